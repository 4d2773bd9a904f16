"""The style sheet of the flags page. It is part of the page, and the page's security policy has its digest."""

import hashlib
from base64 import b64encode
from typing import Final

BAR_STEPS: Final = 20
"""The number of lengths of the similarity bar: the policy allows no style attributes."""

_BARS: Final = "".join(f".bar-{step} i{{width:{100 * step / BAR_STEPS:g}%}}" for step in range(BAR_STEPS + 1))

CSS: Final = (
    """
:root{color-scheme:light dark;--paper:#f6f5f1;--card:#fff;--ink:#1d1d1b;--soft:#666560;--line:#e0ded6;
--mark:#fdeeb0;--mark-ink:#3d3000;--accent:#a34a00;--track:#ebe9e1}
@media(prefers-color-scheme:dark){:root{--paper:#161614;--card:#1f1f1c;--ink:#e9e7e0;--soft:#a09e95;--line:#34332e;
--mark:#584a12;--mark-ink:#ffefb3;--accent:#f2a65a;--track:#34332e}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.6 system-ui,-apple-system,"Segoe UI","Noto Sans",
"PingFang SC","Hiragino Sans GB","Noto Sans CJK SC","Source Han Sans SC","Microsoft YaHei",sans-serif;
-webkit-text-size-adjust:100%;text-size-adjust:100%}
a{color:inherit;text-decoration-color:var(--soft);text-underline-offset:.18em}
a:hover{text-decoration-color:currentColor}
:focus-visible{outline:2px solid var(--accent);outline-offset:3px;border-radius:2px}
.top,main,.end{max-width:74rem;margin:0 auto;padding:0 1.25rem}
.top{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;align-items:baseline;padding-top:1.75rem;padding-bottom:1.25rem}
.top h1{font-size:1.35rem;line-height:1.3;letter-spacing:-.01em;margin:0}
.top p{margin:0;color:var(--soft);font-size:.9rem;flex:1 1 18rem}
.top nav,.end{font-size:.9rem;color:var(--soft)}
.top nav a+a,.end a+a{margin-left:1.1rem}
.flag{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:0 0 1.25rem;overflow:hidden}
.measures{display:flex;flex-wrap:wrap;gap:.35rem 1.4rem;align-items:center;padding:.75rem 1.25rem;
border-bottom:1px solid var(--line);font-size:.9rem;font-variant-numeric:tabular-nums}
.measures b{font-weight:650}
time{white-space:nowrap}
.measures time,.measures .of{color:var(--soft)}
.measures .go{margin-left:auto}
.bar{display:inline-block;width:5.5rem;height:.5rem;margin-right:.6rem;border-radius:.25rem;background:var(--track);
overflow:hidden;vertical-align:.06em}
.bar i{display:block;height:100%;background:var(--accent);border-radius:.25rem}
.pair{display:grid;grid-template-columns:1fr 1fr}
.side{padding:1rem 1.25rem 1.1rem;min-width:0}
.side+.side{border-left:1px solid var(--line)}
.role{margin:0 0 .3rem;font-size:.78rem;color:var(--soft);letter-spacing:.02em}
.side+.side .role{color:var(--accent)}
.side h2{margin:0;font-size:1.12rem;line-height:1.4;font-weight:650;overflow-wrap:anywhere;text-wrap:balance}
.about{margin:.35rem 0 0;font-size:.86rem;line-height:1.5;color:var(--soft);overflow-wrap:anywhere}
.about bdi.id{color:var(--ink);font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
font-size:.95em}
.text{margin:.75rem 0 0;line-height:1.75;white-space:pre-line;overflow-wrap:anywhere;unicode-bidi:isolate;
text-align:start;max-width:38em;tab-size:4}
.none{color:var(--soft);font-style:italic}
mark{background:var(--mark);color:var(--mark-ink);border-radius:3px;padding:.05em .12em;margin:0 -.06em}
.shared{margin:0;padding:.7rem 1.25rem .8rem;border-top:1px solid var(--line);font-size:.9rem;line-height:1.9}
.shared mark{margin-right:.5em;padding:.12em .4em}
.shared .of{color:var(--soft);margin-right:.4em}
.part{background:var(--card);border:1px solid var(--line);border-radius:10px;margin:0 0 1.25rem;padding:1rem 1.25rem}
.part h2{margin:0;font-size:1.05rem;line-height:1.4;overflow-wrap:anywhere}
.part p{margin:.35rem 0 0}
.tag{border:1px solid currentColor;border-radius:1em;padding:0 .6em;font-size:.8rem;color:var(--accent)}
.notice{border-left:3px solid var(--accent);padding:.1rem 0 .1rem .8rem;margin:0 0 1.25rem}
.empty{padding:3rem 0 4rem;color:var(--soft)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.3rem 1.25rem;margin:0 0 1.5rem;font-size:.9rem}
dt{color:var(--soft)}
dd{margin:0;overflow-wrap:anywhere;font-variant-numeric:tabular-nums}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.92em}
.end{padding-bottom:2.5rem}
@media(max-width:44rem){.top,main,.end{padding-left:.9rem;padding-right:.9rem}.pair{grid-template-columns:1fr}
.side+.side{border-left:0;border-top:1px solid var(--line)}.measures .go{margin-left:0}
.measures,.side,.shared{padding-left:1rem;padding-right:1rem}dl{grid-template-columns:1fr;gap:0 0}dd{margin:0 0 .5rem}}
@media print{.top nav,.end,.go{display:none}.flag{break-inside:avoid}}
"""
    + _BARS
)

POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(hashlib.sha256(CSS.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy: this style sheet and nothing else, from nowhere."""
