# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through chromedriver with the WebDriver protocol and nothing but the standard library."""
import base64
import json
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request

import lkgfs_testlib as lib

DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
DRIVER, CHROMIUM = "chromedriver", "chromium"


class Browser:
    """One window. `dark` and `script`: as the reader has set it."""

    def __init__(self, dark=False, script=True):
        self.profile = tempfile.mkdtemp(prefix=lib.PREFIX)
        self.driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       cwd=self.profile, process_group=0)
        self.session = None
        line = ""
        while "started successfully on port" not in line:
            line = self.driver.stdout.readline()
            assert line, "chromedriver does not start"
        self.base = "http://127.0.0.1:" + re.search(r"port (\d+)", line)[1]
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking",
                     f"--user-data-dir={self.profile}/profile"] + (["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if dark else
                                                                   ["--blink-settings=preferredColorScheme=1"])
        options = {"binary": shutil.which(CHROMIUM), "args": arguments,
                   "prefs": {} if script else {"profile.managed_default_content_settings.javascript": 2}}
        value = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = f"/session/{value['sessionId']}"

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + (self.session or "") + path, data=data, method=method)
        try:
            with DIRECT.open(request, timeout=lib.TIMEOUT_S) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise lib.Failure(error.read().decode()) from error

    def open(self, url, width, height=900):
        self.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}})
        self.call("POST", "/url", {"url": url})

    def run(self, script, *args):
        return self.call("POST", "/execute/sync", {"script": script, "args": list(args)})

    def console(self):
        return [entry for entry in self.call("POST", "/se/log", {"type": "browser"}) if entry["level"] != "DEBUG"]

    def cdp(self, command, **params):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def screenshot(self, path):
        """The whole page."""
        png = self.cdp("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(png))

    def close(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.driver.send_signal(signal.SIGTERM)
            self.driver.wait(lib.TIMEOUT_S)
            self.driver.stdout.close()
            shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
