/* SPDX-License-Identifier: Apache-2.0 */
/* Text in HTML, and the style of a page. */
#include "report.h"

static void put_bytes(struct lkg_buf *buf, const char *text, size_t size)
{
        static const char *const entities[] = {
                ['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;"
        };
        LKG_CLEANUP(lkg_buf_deinit) struct lkg_buf shown = LKG_BUF_INIT;

        for (size_t at = 0; at < size;) {
                size_t n = 0;

                while (at + n < size && text[at + n] != '\n')
                        n++;
                lkg_buf_shown(&shown, text + at, n);
                if (at + n < size)
                        lkg_buf_putc(&shown, '\n');
                at += n + 1;
        }
        for (const char *p = lkg_tool_text(&shown); *p; p++) {
                unsigned char c = (unsigned char)*p;

                if (c < LKG_ARRAY_SIZE(entities) && entities[c])
                        lkg_buf_puts(buf, entities[c]);
                else
                        lkg_buf_putc(buf, *p);
        }
}

static void put_prose(struct lkg_buf *buf, const char *text)
{
        for (;;) {
                size_t n = strcspn(text, "`");
                const char *end = text[n] ? strchr(text + n + 1, '`') : NULL;

                if (!end) {
                        put_bytes(buf, text, strlen(text));
                        return;
                }
                put_bytes(buf, text, n);
                lkg_buf_puts(buf, "<code>");
                put_bytes(buf, text + n + 1, (size_t)(end - text) - n - 1);
                lkg_buf_puts(buf, "</code>");
                text = end + 1;
        }
}

/* %s, %-s, %u, %zu: the compiler compares them with the arguments. */
void lkg_html(struct lkg_buf *buf, const char *fmt, ...)
{
        const char *text;
        va_list ap;

        va_start(ap, fmt);
        for (; *fmt; fmt++) {
                if (*fmt != '%') {
                        lkg_buf_putc(buf, *fmt);
                        continue;
                }
                switch (*++fmt) {
                case 's':
                        text = va_arg(ap, const char *);
                        put_bytes(buf, text, strlen(text));
                        break;
                case '-':
                        put_prose(buf, va_arg(ap, const char *));
                        fmt++;
                        break;
                case 'u':
                        lkg_buf_u64(buf, va_arg(ap, unsigned));
                        break;
                default: /* z */
                        lkg_buf_u64(buf, va_arg(ap, size_t));
                        fmt++;
                }
        }
        va_end(ap);
}

void lkg_html_section(struct lkg_buf *buf, const char *id, const char *title, const char *note)
{
        lkg_html(buf, "<section id=\"%s\" aria-labelledby=\"h-%s\">\n<h2 id=\"h-%s\">%s", id, id, id, title);
        if (note)
                lkg_html(buf, " <span class=\"count\">%s</span>", note);
        lkg_buf_puts(buf, "</h2>\n");
}

void lkg_html_time(struct lkg_buf *buf, const char *rfc3339)
{
        lkg_html(buf, "<time datetime=\"%s\">", rfc3339);
        if (strlen(rfc3339) == 20 && rfc3339[10] == 'T' && rfc3339[19] == 'Z') {
                lkg_buf_puts(buf, "<span class=\"date\">");
                put_bytes(buf, rfc3339, 10);
                lkg_buf_puts(buf, "</span> ");
                put_bytes(buf, rfc3339 + 11, 8);
        } else {
                lkg_html(buf, "%s", rfc3339);
        }
        lkg_buf_puts(buf, "</time>");
}

void lkg_html_diff(struct lkg_buf *buf, const char *text)
{
        const char *line;
        size_t size;

        lkg_buf_puts(buf, "<pre class=\"diff\" tabindex=\"0\">");
        while (lkg_tool_next_line(&text, &line, &size)) {
                bool header = strncmp(line, "--- ", 4) == 0 || strncmp(line, "+++ ", 4) == 0 || *line == '@';
                const char *tag = header ? "b" : *line == '+' ? "ins" : *line == '-' ? "del" : NULL;

                if (tag)
                        lkg_html(buf, "<%s>", tag);
                put_bytes(buf, line, size);
                if (tag)
                        lkg_html(buf, "</%s>", tag);
                lkg_buf_putc(buf, '\n');
        }
        lkg_buf_puts(buf, "</pre>\n");
}

/*
 * The style of a page: one column, hairlines instead of boxes, light and dark as the reader has it, paper without what only a
 * screen can do. Ten colours for layers; each layer also has a letter and its name.
 */

/* Lines break between rules. */
/* clang-format off */
#define LAYER(n, hue) \
        ".l" #n "{--tint:hsl(" #hue " 62% 91%);--edge:hsl(" #hue " 60% 29%)}" \
        "@media(prefers-color-scheme:dark){.l" #n "{--tint:hsl(" #hue " 38% 17%);--edge:hsl(" #hue " 60% 76%)}}"

const char lkg_html_style[] =
        ":root{color-scheme:light dark;--bg:#fcfcfb;--fg:#1d2125;--soft:#5a636c;--line:#dfe2e5;"
        "--raise:#f3f4f5;--bad:#a5231c;--badbg:#fbeae8;--warn:#7a4b00;--warnbg:#fcf1dc;--ok:#1b6337;"
        "--okbg:#e6f3ea;--note:#345a8a;--notebg:#e8eff8;"
        "--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace}"
        "@media(prefers-color-scheme:dark){"
        ":root{--bg:#15181b;--fg:#e3e6e9;--soft:#9aa4ae;--line:#30363c;--raise:#1e2226;--bad:#ff9d94;"
        "--badbg:#3b1d1b;--warn:#f2c36b;--warnbg:#362a12;--ok:#86d6a1;--okbg:#17301f;--note:#9fc3f1;"
        "--notebg:#1b2a3c}}"
        "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%;scroll-padding-top:1rem}"
        "body{margin:0 auto;max-width:68rem;padding:2rem clamp(1rem,4vw,3rem) 5rem;background:var(--bg);"
        "color:var(--fg);font:400 1rem/1.55 system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\","
        "\"Noto Sans\",\"DejaVu Sans\",sans-serif;overflow-wrap:anywhere}"
        "h1,h2,h3{line-height:1.25;text-wrap:balance;font-weight:650;margin:0}"
        "h1{font-size:1.75rem;letter-spacing:-.015em}"
        "h2{font-size:1.3rem;letter-spacing:-.01em;margin:0 0 1rem}"
        "h3{font-size:1.02rem;margin:1.75rem 0 .6rem}p{margin:.35rem 0;max-width:46rem}"
        "section{margin-top:2.75rem;padding-top:1.5rem;border-top:1px solid var(--line)}"
        ".lead{color:var(--soft);margin:.3rem 0 0}"
        ".verdict{font-size:1.15rem;margin:1.1rem 0 0;display:flex;gap:.6rem;flex-wrap:wrap;"
        "align-items:baseline}"
        ".count,.soft,.date{color:var(--soft);font-weight:400}.count{font-size:.95rem;letter-spacing:0}"
        "a{color:inherit;text-underline-offset:.2em}"
        "nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.3rem 1.1rem;margin:1.2rem 0 0;padding:0;"
        "font-size:.92rem}"
        "nav a{color:var(--soft)}"
        "code,pre,.mono,time{font-family:var(--mono);font-size:.86em;font-variant-ligatures:none}"
        "time{font-variant-numeric:tabular-nums}"
        "code{background:var(--raise);border-radius:.25rem;padding:.1em .35em}"
        "pre{background:var(--raise);border-radius:.4rem;padding:.8rem 1rem;overflow-x:auto;"
        "line-height:1.5;margin:.6rem 0;overflow-wrap:normal;max-width:100%}"
        ".wrap{white-space:pre-wrap;overflow-wrap:anywhere}"
        ".badge{display:inline-block;border-radius:1em;padding:.05em .65em;font-size:.8rem;font-weight:600;"
        "line-height:1.6;white-space:nowrap;background:var(--raise);color:var(--soft)}"
        ".error{background:var(--badbg);color:var(--bad)}"
        ".warning,.unknown{background:var(--warnbg);color:var(--warn)}"
        ".note{background:var(--notebg);color:var(--note)}.good{background:var(--okbg);color:var(--ok)}"
        "ul.items,ol.items{list-style:none;margin:0;padding:0}"
        ".items>li{display:grid;grid-template-columns:6.2rem minmax(0,1fr);gap:.1rem .9rem;padding:.7rem 0;"
        "border-top:1px solid var(--line)}"
        ".items>li:first-child{border-top:0;padding-top:0}.items p{margin:0}"
        ".items .do{color:var(--soft);margin-top:.15rem}.do code{color:var(--fg)}"
        ".where{font-family:var(--mono);font-size:.8rem;color:var(--soft)}"
        "dl{display:grid;grid-template-columns:minmax(7rem,max-content) minmax(0,1fr);gap:.25rem 1.2rem;"
        "margin:.6rem 0}"
        "dt{color:var(--soft)}dd{margin:0}details{border-top:1px solid var(--line)}"
        "details:last-of-type{border-bottom:1px solid var(--line)}"
        "summary{cursor:pointer;padding:.6rem 0;font-weight:550}summary:hover{color:var(--note)}"
        "summary:focus-visible,a:focus-visible,pre:focus-visible{outline:2px solid var(--note);"
        "outline-offset:2px}"
        "details>:last-child{margin-bottom:1rem}ins,del{text-decoration:none}"
        "ins{color:var(--ok);background:var(--okbg)}del{color:var(--bad);background:var(--badbg)}"
        ".diff b{font-weight:400;color:var(--note)}"
        ".line>li{grid-template-columns:11.5rem 6.2rem minmax(0,1fr)}"
        "table{border-collapse:collapse;width:100%;font-size:.9rem}th,td{overflow-wrap:normal}"
        "td.mono,td.where,td.was{overflow-wrap:anywhere}"
        "th{white-space:nowrap;text-align:left;font-weight:550;color:var(--soft);"
        "padding:.35rem .8rem .35rem 0;border-bottom:1px solid var(--line)}"
        "td{padding:.35rem .8rem .35rem 0;vertical-align:top;border-bottom:1px solid var(--line)}"
        "td.num{font-variant-numeric:tabular-nums;white-space:nowrap}td.long{width:100%}"
        ".fields{table-layout:fixed}.fields th:nth-child(1){width:4.4rem}.fields th:nth-child(2){width:30%}"
        ".fields th:nth-child(3){width:26%}.fields th:nth-child(4){width:26%}"
        ".key{display:inline-block;min-width:1.75em;text-align:center;border-radius:.3rem;padding:0 .4em;"
        "font:600 .8rem/1.6 var(--mono);background:var(--tint);color:var(--edge);"
        "border:1px solid var(--edge)}"
        ".legend{list-style:none;margin:.4rem 0 1.2rem;padding:0;display:flex;flex-wrap:wrap;"
        "gap:.35rem 1.4rem;font-size:.92rem}"
        ".fields td:first-child{padding-left:.6rem;border-left:.28rem solid var(--edge)}"
        ".was{color:var(--soft);font-size:.84rem}"
        "footer{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--soft);"
        "font-size:.88rem}"
        "@media(max-width:44rem){"
        ".items>li{grid-template-columns:minmax(0,1fr)}"
        ".line>li{grid-template-columns:max-content minmax(0,1fr)}.line>li>:last-child{grid-column:1/-1}"
        "h1{font-size:1.4rem}h2{font-size:1.18rem}"
        "section{margin-top:2rem}dl{grid-template-columns:minmax(0,1fr);gap:0}dd{margin:0 0 .5rem}"
        "table,tbody,tr,td{display:block}"
        "thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}"
        "tr{padding:.5rem 0;border-bottom:1px solid var(--line)}"
        "td{border:0;padding:.05rem 0;overflow-wrap:anywhere}"
        "td[data-label]:not(:empty)::before{content:attr(data-label) \" \";color:var(--soft);font-size:.82rem}"
        ".fields tr{border-left:.28rem solid var(--edge);padding-left:.7rem}"
        ""
        ".fields td:first-child{border:0;padding:0 .5rem 0 0}.fields td:nth-child(-n+2),td.num{display:inline-block}"
        "td.num{margin-right:.9rem;white-space:normal}}"
        "@media print{"
        "body{max-width:none;padding:0;font-size:10pt}nav{display:none}"
        "section{break-inside:auto;margin-top:1.2rem}"
        "details::details-content{content-visibility:visible;block-size:auto}"
        "h2,h3,summary{break-after:avoid}li,tr{break-inside:avoid}"
        "pre{white-space:pre-wrap;overflow-wrap:anywhere}}"
        LAYER(0, 212) LAYER(1, 28) LAYER(2, 150) LAYER(3, 280) LAYER(4, 50) LAYER(5, 340) LAYER(6, 185)
        LAYER(7, 0) LAYER(8, 245) LAYER(9, 90);
/* clang-format on */
