"""How the page looks: light or dark as the reader's system is, and no wider than the window."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root{color-scheme:light dark;--ink:#1c2530;--soft:#5b6776;--paper:#fff;--card:#f6f8fa;--line:#d8dee6;
--blue:#1769aa;--green:#12805c;--red:#c4471b;--sky:#3b9ad9;--gold:#b87a00;--rose:#a8508a}
@media (prefers-color-scheme:dark){:root{--ink:#e4e9ef;--soft:#9aa6b4;--paper:#12171d;--card:#1a212a;--line:#323c48;
--blue:#5aa9e6;--green:#3fbf93;--red:#f0815a;--sky:#8accf2;--gold:#e0aa3e;--rose:#d58abb}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem clamp(.75rem,3vw,2.5rem) 3rem;max-width:1500px;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
h1{font-size:1.5rem;margin:0}h2{font-size:1.15rem;margin:2.2rem 0 .6rem}
p{margin:.4rem 0}.soft,figcaption small{color:var(--soft)}bdi,code{overflow-wrap:anywhere}
code{font:.88em/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre-wrap}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.6rem;margin:1.2rem 0 0;padding:0}
.tiles div{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.55rem .75rem}
.tiles dt{color:var(--soft);font-size:.85rem}.tiles dd{margin:0;font-size:1.25rem;white-space:nowrap;font-variant-numeric:tabular-nums}
.tiles small{font-size:.8rem;color:var(--soft)}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,25rem),1fr));gap:1rem;margin-top:1.2rem}
figure{margin:0;padding:.8rem 1rem .6rem;background:var(--card);border:1px solid var(--line);border-radius:.5rem;min-width:0}
figcaption{font-weight:600;margin-bottom:.2rem}figcaption small{font-weight:400}
.plot{position:relative;margin:.9rem 1.2rem 2.7rem 3.4rem}.plot svg{display:block;width:100%;height:12rem;overflow:visible}
.x,.y{position:absolute;color:var(--soft);font-size:.78rem;line-height:1.25;font-variant-numeric:tabular-nums}
.y{right:100%;top:0;height:12rem;width:3.2rem}.y span{position:absolute;right:.45rem;transform:translateY(50%);white-space:nowrap}
.x{left:0;right:0;top:12.4rem;text-align:center}.x span{position:absolute;transform:translateX(-50%);white-space:nowrap}
.grid,.mark,.edge{vector-effect:non-scaling-stroke;fill:none}.grid{stroke:var(--line);stroke-width:1}
.mark{stroke:var(--rose);stroke-width:1;stroke-dasharray:3 3}.edge{stroke:currentColor;stroke-width:1.6;fill:none}
.area{fill:currentColor;fill-opacity:.28}.stack .area{fill-opacity:.85}
.hints rect{fill:transparent}.hints rect:hover{fill:var(--ink);fill-opacity:.08}
.blue{color:var(--blue);fill:var(--blue)}.green{color:var(--green);fill:var(--green)}.red{color:var(--red);fill:var(--red)}
.sky{color:var(--sky);fill:var(--sky)}.gold{color:var(--gold);fill:var(--gold)}.rose{color:var(--rose);fill:var(--rose)}
path.edge{fill:none}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;margin:.2rem 0;padding:0;list-style:none;font-size:.85rem}
.legend li::before{content:"";display:inline-block;width:.75em;height:.75em;margin-right:.4em;border-radius:2px;background:currentColor}
.legend li{color:var(--ink)}.legend li.blue::before{background:var(--blue)}.legend li.green::before{background:var(--green)}
.legend li.red::before{background:var(--red)}.legend li.sky::before{background:var(--sky)}
.legend li.gold::before{background:var(--gold)}.legend li.rose::before{background:var(--rose)}
.legend li.flag::before{width:0;height:1em;border-radius:0;border-left:1px dashed var(--rose);background:none;vertical-align:middle}
.frame{overflow-x:auto;border:1px solid var(--line);border-radius:.5rem;margin:.6rem 0}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{padding:.35rem .7rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
th{background:var(--card);font-weight:600;white-space:nowrap}tbody tr:last-child td{border-bottom:0}
td{min-width:3rem;max-width:34rem}td ul{margin:0;padding-left:1.1rem}
.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.bar{display:block;width:9rem;height:.75rem;margin-top:.3rem;background:var(--line);border-radius:2px}
.wide{min-width:16rem}.t{white-space:nowrap}.name{min-width:9rem;display:block}.bad{color:var(--red)}
summary{cursor:pointer;margin:.6rem 0}
@media (max-width:640px){.x span:nth-child(even){display:none}.plot{margin-left:2.9rem}.y{width:2.8rem}
th,td{padding:.3rem .5rem}.bar{width:6rem}.charts{gap:.7rem}figure{padding:.7rem .6rem .4rem}}
@media print{.frame{overflow:visible}figure,tr{break-inside:avoid}}
"""
