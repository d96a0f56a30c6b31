# SPDX-License-Identifier: Apache-2.0
"""Counts individual tests in the logs of one suite.

    tally.py SUITE FILE...     FILE is meson's testlog (*.json) or pytest's junit report (*.xml)

Prints what failed, with the end of its output; the last line is `<passed> <failed>`. A cmocka program or a TAP script counts once
per test inside it, any other program once. A skipped test counts as failed: the machine that runs the suites has everything the
tests need. If a program dies, its current test counts as failed; a suite without any test is one failure.
"""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

GOOD = ('OK', 'EXPECTEDFAIL')
TAIL_LINES = 30

CMOCKA_OK = re.compile(r'^\[       OK \]', re.M)
CMOCKA_BAD = re.compile(r'^\[  (?:FAILED|ERROR|SKIPPED) *\] (?!\d+ test|---).+$', re.M)
TAP_OK = re.compile(r'^ok\b(?!.*#\s*skip)', re.M | re.I)
TAP_BAD = re.compile(r'^(?:not ok\b(?!.*#\s*todo).*|ok\b.*#\s*skip.*)$', re.M | re.I)


def count_program(test):
    """(passed, names of failed) of one entry of meson's log."""
    output = (test.get('stdout') or '') + '\n' + (test.get('stderr') or '')
    for good, bad in ((CMOCKA_OK, CMOCKA_BAD), (TAP_OK, TAP_BAD)):
        passed = len(good.findall(output))
        failed = sorted({match.group(0).strip() for match in bad.finditer(output)})
        if passed or failed:
            break
    else:
        passed, failed = (1, []) if test['result'] in GOOD else (0, [test['result']])
    if test['result'] not in GOOD and not failed:
        failed = ['ended with ' + test['result']]
    return passed, failed


def tail(text):
    lines = (text or '').rstrip().splitlines()
    return '\n'.join('      ' + line for line in lines[-TAIL_LINES:])


def tally_meson(path):
    passed = failed = 0
    with open(path, encoding='utf-8', errors='replace') as log:
        for line in log:
            test = json.loads(line)
            good, bad = count_program(test)
            passed += good
            failed += len(bad)
            for name in bad:
                print(f"   FAILED {test['name']}: {name}")
            if bad:
                print(tail((test.get('stdout') or '') + '\n' + (test.get('stderr') or '')))
    return passed, failed


def tally_junit(path):
    passed = failed = 0
    for case in ElementTree.parse(path).iter('testcase'):
        bad = [child for child in case if child.tag in ('failure', 'error', 'skipped')]
        if not bad:
            passed += 1
            continue
        failed += 1
        name = f"{case.get('classname')}::{case.get('name')}"
        print(f"   FAILED {name}: {bad[0].tag}: {bad[0].get('message')}")
        print(tail(bad[0].text))
    return passed, failed


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    suite, paths = arguments[0], arguments[1:]
    passed = failed = 0
    for path in paths:
        try:
            good, bad = (tally_junit if path.endswith('.xml') else tally_meson)(path)
        except FileNotFoundError:
            good, bad = 0, 0
        except (ValueError, KeyError, ElementTree.ParseError) as error:
            print(f'   FAILED {suite}: {path} is damaged: {error}')
            good, bad = 0, 1
        passed += good
        failed += bad
    if passed + failed == 0:
        print(f'   FAILED {suite}: it ran no test')
        failed = 1
    print(passed, failed)


main(sys.argv[1:])
