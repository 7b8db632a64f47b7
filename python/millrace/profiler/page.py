# SPDX-License-Identifier: Apache-2.0
"""The page that a report is: it holds its data, and needs no network."""

HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>@TITLE@</title><style>
:root{--ink:#1f2328;--soft:#656d76;--line:#d8dee4;--back:#fff;--panel:#f6f8fa;--mark:#c4302b;--accent:#0b62c4}
*{box-sizing:border-box}body{margin:0;font:14px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;color:var(--ink);background:var(--back)}
header{padding:18px 24px 6px}h1{font-size:20px;margin:0 0 2px}h2{font-size:16px;margin:0 0 8px}main{padding:0 24px 40px;max-width:1800px}
section{margin-top:22px}p.note{color:var(--soft);margin:4px 0 8px;max-width:110ch}
.figures{display:flex;flex-wrap:wrap;gap:10px;margin:10px 0}.figure{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:8px 14px;min-width:130px}
.figure b{display:block;font-size:18px;font-weight:600}.figure span{color:var(--soft);font-size:12px}
.bar{display:flex;flex-wrap:wrap;gap:8px 14px;align-items:center;margin:6px 0}button,select{font:inherit;max-width:100%;padding:2px 10px;border:1px solid var(--line);border-radius:5px;background:var(--back);cursor:pointer}
label{user-select:none;cursor:pointer}canvas{display:block;width:100%;border:1px solid var(--line);border-radius:6px;background:var(--back)}#timeline{cursor:grab}#overview{cursor:crosshair}
.columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,760px),1fr));gap:22px}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:13px}th{text-align:left;font-weight:600;border-bottom:1px solid var(--line);padding:3px 8px;white-space:nowrap}
td{padding:3px 8px;border-bottom:1px solid #eaeef2;vertical-align:top}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}td.op,td:first-child:not(.name){white-space:nowrap}td.name{overflow-wrap:break-word;min-width:140px}
tr.go{cursor:pointer}tr.go:hover{background:#eef4fb}td .share{display:inline-block;height:9px;background:var(--accent);opacity:.55;border-radius:2px;vertical-align:baseline}
#detail{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:8px 14px;margin-top:8px;min-height:44px;font-size:13px;overflow-wrap:anywhere}#detail b{font-weight:600}
#tip{position:fixed;pointer-events:none;background:#1f2328;color:#fff;padding:5px 9px;border-radius:5px;font-size:12px;max-width:520px;display:none;z-index:9;white-space:pre-line}
details summary{cursor:pointer;color:var(--accent);margin-top:6px}.swatch{display:inline-block;width:9px;height:9px;border-radius:2px;margin-right:6px}
</style></head><body>
<header><h1>@TITLE@</h1><p class="note" id="about"></p></header><main>
<section id="steps"><h2>Steps</h2><canvas id="bars" height="90"></canvas><div class="bar"><button id="before">&larr; step before</button><select id="choice"></select><button id="after">next step &rarr;</button></div></section>
<div class="figures" id="figures"></div>
<section><h2>Whole step, by device</h2><p class="note">How many of a device's threads had an op, or a part of one, at each time. The frame is what the timeline below shows: drag to choose another range.</p><canvas id="overview"></canvas></section>
<section><h2>Timeline, by thread</h2><div class="bar"><button id="in">zoom in</button><button id="out">zoom out</button><button id="fit">whole step</button>
<label><input type="checkbox" id="arrows" checked> Send/Recv arrows</label><label><input type="checkbox" id="path" checked> critical path</label><label title="from where an op split its work to where another thread began with a part of it"><input type="checkbox" id="queue" checked> queueing of parts</label>
<label title="above an op: red where others had its thread's CPU, grey where its thread slept"><input type="checkbox" id="switches" checked> thread switches</label><span class="note" style="color:var(--soft)">wheel zooms, dragging moves, a click chooses an op</span></div>
<canvas id="timeline"></canvas></section>
<section><h2>One op, and whom it waited for</h2><canvas id="close"></canvas><div id="detail"></div></section>
<div class="columns"><section><h2>Ops by time</h2><div class="scroll" id="ops"></div></section><section><h2>Nodes by time</h2><div class="scroll" id="nodes"></div></section>
<section><h2>Critical path</h2><div class="scroll" id="critical"></div></section><section><h2>Idle threads, and why</h2><div class="scroll" id="idle"></div></section>
<section><h2>Waits before ops</h2><div class="scroll" id="delays"></div></section><section><h2>Who holds the peak of memory</h2><div class="scroll" id="peak"></div></section>
<section><h2>Ops by memory</h2><div class="scroll" id="memory"></div></section><section id="all"><h2>All steps</h2><div class="scroll" id="means"></div></section></div>
</main><div id="tip"></div><script>const DATA="""

TAIL = r""";
"use strict";
const $=id=>document.getElementById(id),N=DATA.names;
const esc=s=>String(s).replace(/[&<>"]/g,c=>({"&":"&amp;","<":"&lt;",">":"&gt;",'"':"&quot;"}[c]));
const time=n=>n<0?"-"+time(-n):n<1e3?n+" ns":n<1e6?(n/1e3).toFixed(n<1e4?2:1)+" us":n<1e9?(n/1e6).toFixed(n<1e7?2:1)+" ms":(n/1e9).toFixed(2)+" s";
const size=b=>b<1024?b+" B":b<1048576?(b/1024).toFixed(1)+" KiB":b<1073741824?(b/1048576).toFixed(1)+" MiB":(b/1073741824).toFixed(2)+" GiB";
const percent=(a,b)=>b>0?(100*a/b).toFixed(1)+" %":"";
const hue={};function colour(op,alpha){if(!(op in hue)){let h=0;for(const c of op)h=(h*31+c.charCodeAt(0))>>>0;hue[op]=[h%360,45+(h>>9)%30,60+(h>>15)%14]}const[a,b,c]=hue[op];return`hsla(${a},${b}%,${c}%,${alpha??1})`}
// A run: [name, op, device, thread, start, free, end, ready, helped, made, wait, inputs]
const NAME=0,OP=1,DEVICE=2,THREAD=3,START=4,FREE=5,END=6,READY=7,HELPED=8,MADE=9,WAIT=10,INPUTS=11,PREEMPTED=12,ASLEEP=13;
const OFF=["asleep","preempted"],OFF_COLOUR=["rgba(101,109,118,.55)","#c4302b"];
// A part: [run, thread, asked, start, end]
const ASKED=2,BEGUN=3,DONE=4;
const LANE=22,RULER=24,MEMORY=70,GROUP=20,ROW=26;
let step,runs,lanes,places,readers,onPath,view,chosen=-1,height;

const path=n=>esc(n).replace(/[\/]/g,"/<wbr>");  // a name may be broken there
function table(head,rows,click){
  const cells=(r,tag)=>r.map((c,i)=>`<${tag} class="${head[i][1]||""}">${c}</${tag}>`).join("");
  const body=rows.map(r=>`<tr${r.go===undefined?"":` class="go" data-go="${r.go}"`}>${cells(r.cells||r,"td")}</tr>`);
  const shown=body.slice(0,15).join(""),rest=body.slice(15);
  const make=b=>`<table><tr>${cells(head.map(h=>h[0]),"th")}</tr>${b}</table>`;
  return rows.length?make(shown)+(rest.length?`<details><summary>${rest.length} more</summary>${make(rest.join(""))}</details>`:""):"<p class=note>none</p>";
}
const share=(a,b)=>`<span class="share" style="width:${Math.max(1,Math.round(50*a/Math.max(b,1)))}px"></span>`;
const opCell=o=>`<span class="swatch" style="background:${colour(o)}"></span>${esc(o)}`;

function load(i){
  step=DATA.steps[i];runs=step.runs;$("choice").value=i;
  readers=runs.map(()=>[]);runs.forEach((r,k)=>r[INPUTS].forEach(f=>readers[f].push(k)));
  onPath=new Set(step.critical.map(c=>c[0]));
  lanes=[];let y=RULER;
  DATA.devices.forEach((device,d)=>{
    const here=runs.map((r,k)=>k).filter(k=>runs[k][DEVICE]===d);if(!here.length)return;
    lanes.push({y,group:device});y+=GROUP;
    const threads=[...new Set(here.filter(k=>runs[k][FREE]>=runs[k][END]).map(k=>runs[k][THREAD]))].sort((a,b)=>a-b);
    for(const t of threads){lanes.push({y,thread:t,label:step.threads[t]||(t?"thread "+t:"no thread"),runs:here.filter(k=>runs[k][THREAD]===t&&runs[k][FREE]>=runs[k][END])});y+=LANE}
    const taken=step.parts.filter(p=>runs[p[0]][DEVICE]===d);
    for(const t of[...new Set(taken.map(p=>p[1]))].sort((a,b)=>a-b)){lanes.push({y,label:(step.threads[t]||"thread "+t)+" helps",parts:taken.filter(p=>p[1]===t),pale:true});y+=LANE-6}
    const rows=[];
    for(const k of here.filter(k=>runs[k][FREE]<runs[k][END])){let row=rows.find(r=>r.end<=runs[k][START]);
      if(!row){if(rows.length<6){row={end:0,runs:[]};rows.push(row)}else row=rows.reduce((a,b)=>a.end<b.end?a:b)}
      row.runs.push(k);row.end=Math.max(row.end,runs[k][END])}
    rows.forEach((r,i)=>{lanes.push({y,label:i?"":"waits by itself",runs:r.runs,pale:true});y+=LANE-6});
  });
  places=placesOf(lanes);height=y+8+MEMORY;view=[0,Math.max(step.length,1)];
  chosen=step.critical.reduce((best,[k,t])=>best<0||t>best[1]?[k,t]:best,-1)[0]??-1;
  figures();tables();draw();bars();
}
function placesOf(lanes){const at=new Map();lanes.forEach(l=>l.runs&&l.runs.forEach(k=>at.set(k,l)));return at}
function figures(){
  const threads=new Set(runs.filter(r=>r[FREE]>=r[END]&&r[THREAD]).map(r=>r[THREAD])).size,busy=runs.reduce((s,r)=>s+r[FREE]-r[START],0),
    path=step.critical.reduce((s,c)=>s+c[1],0),top=step.peak;
  const f=[[time(step.length),"the step"],[runs.length,"ops run"],[threads,threads===1?"thread ran ops":"threads ran ops"],[percent(busy,threads*step.length),"of their time in ops"],
    [time(path),"ops on the critical path"],[time(step.length-path),"of the step between them"],[time(step.chain),"longest chain of ops that need each other"],[size(top.bytes),"peak of the ops' outputs"],[size(step.memory_peak),"peak above the start, by the allocator"]];
  const taken=step.off_cpu.filter(o=>o[3]).reduce((s,o)=>s+o[2]-o[1],0);if(taken)f.push([time(taken),"in which others had the threads' CPUs"]);
  $("figures").innerHTML=f.map(([a,b])=>`<div class="figure"><b>${a}</b><span>${b}</span></div>`).join("");
}
function tables(){
  const L=step.length,N_=["","n"];
  const head=[["op","op"],["runs","n"],["time","n"],["of the step","n"],["",""],["helpers","n"],["off threads","n"],["queued","n"]];
  const row=o=>[opCell(o[0]),o[1],time(o[2]),percent(o[2],L),share(o[2],L),o[3]?time(o[3]):"",o[4]?time(o[4]):"",time(o[5])];
  $("ops").innerHTML=table(head,step.ops.map(row));
  const head2=[["node","name"],["op","op"],["time","n"],["of the step","n"],["made","n"]];
  const longest=runs.map((r,k)=>k).sort((a,b)=>(runs[b][FREE]-runs[b][START])-(runs[a][FREE]-runs[a][START])).slice(0,60);
  $("nodes").innerHTML=table(head2,longest.map(k=>{const r=runs[k];return{go:k,cells:[path(N[r[NAME]]),opCell(N[r[OP]]),time(r[FREE]-r[START]),percent(r[FREE]-r[START],L),r[MADE]?size(r[MADE]):""]}}));
  $("critical").innerHTML=`<p class="note">What the end of the step waited for (red in the timeline): of each op the input that came last, or what its thread ran before it. Here the longest and their gaps: the time before that was no op's. The figure above of the longest chain tells what no number of threads can shorten.</p>`+
    table([["node","name"],["op","op"],["gap","n"],["time","n"],["of the step","n"]],[...step.critical].sort((a,b)=>b[1]+b[2]-a[1]-a[2]).slice(0,60).map(([k,t,g])=>({go:k,cells:[path(N[runs[k][NAME]]),opCell(N[runs[k][OP]]),time(g),time(t),percent(t,L)]})));
  $("idle").innerHTML=table([["thread"],["why"],["op","name"],["times","n"],["idle","n"],["of the step","n"]],step.idle.map(i=>[esc(step.threads[i[0]]||i[0]),esc(i[1]),path(i[2]),i[3],time(i[4]),percent(i[4],L)]));
  const late=runs.map((r,k)=>k).filter(k=>runs[k][START]-runs[k][READY]>=1000).sort((a,b)=>(runs[b][START]-runs[b][READY])-(runs[a][START]-runs[a][READY])).slice(0,60);
  $("delays").innerHTML=`<p class="note">From when all that an op waits for was there until it began.</p>`+table([["node","name"],["waited","n"],["why","name"]],late.map(k=>({go:k,cells:[path(N[runs[k][NAME]]),time(runs[k][START]-runs[k][READY]),path(N[runs[k][WAIT]])]})));
  $("peak").innerHTML=`<p class="note">${size(step.peak.bytes)} at ${time(step.peak.at)}: outputs of ops from their making to the last that read them. Variables and feeds were there before and do not count; the allocator's own peak, which counts scratch memory too, is ${size(step.memory_peak)}.</p>`+
    table([["made by","name"],["op","op"],["bytes","n"],["from","n"],["to","n"]],step.peak.holders.map(([k,b,s,e])=>({go:k,cells:[path(N[runs[k][NAME]]),opCell(N[runs[k][OP]]),size(b),time(s),time(e)]})));
  $("memory").innerHTML=table([["op","op"],["runs","n"],["made","n"]],[...step.ops].filter(o=>o[6]).sort((a,b)=>b[6]-a[6]).map(o=>[opCell(o[0]),o[1],size(o[6])]));
  $("all").style.display=DATA.steps.length>1?"":"none";
  $("means").innerHTML=table([["op","op"],["runs a step","n"],["mean","n"],["least","n"],["greatest","n"],["made a step","n"]],DATA.means.map(m=>[opCell(m[0]),m[1],time(m[2]),time(m[3]),time(m[4]),size(m[5])]));
}
function bars(){
  $("steps").style.display=DATA.steps.length>1?"":"none";if(DATA.steps.length<2)return;
  const c=$("bars"),[g,w,h]=surface(c,90),lengths=DATA.steps.map(s=>s.length).sort((a,b)=>a-b),most=lengths.at(-1),wide=w/DATA.steps.length;
  const top=Math.min(most,4*lengths[lengths.length>>1]); // a first step, which is compiled, would make the others too low to see
  DATA.steps.forEach((s,i)=>{const high=Math.max(2,(h-18)*Math.min(1,s.length/top)),x=i*wide+1,across=Math.max(1,wide-2);g.fillStyle=s===step?"#0b62c4":"#9db7d5";g.fillRect(x,h-high,across,high);if(s.length>top){g.fillStyle="#fff";g.fillRect(x,h-high+6,across,3)}});
  g.fillStyle="#656d76";g.font="11px sans-serif";g.textBaseline="top";g.fillText("longest: "+time(most)+(most>top?"; bars with a gap are longer than "+time(top):""),6,3);
}
function surface(c,high){const w=c.clientWidth,r=window.devicePixelRatio||1;c.style.height=high+"px";c.width=w*r;c.height=high*r;const g=c.getContext("2d");g.setTransform(r,0,0,r,0,0);g.clearRect(0,0,w,high);return[g,w,high]}
const LEFT=window.innerWidth<600?112:150;
const X=(t,w)=>LEFT+(t-view[0])/(view[1]-view[0])*(w-LEFT-10);
function ruler(g,w,high){
  const span=view[1]-view[0],most=Math.max(2,Math.min(12,Math.floor((w-LEFT)/80)));let tick=Math.pow(10,Math.floor(Math.log10(span/most)));tick*=[1,2,5,10].find(m=>span/(tick*m)<=most);
  g.font="11px sans-serif";g.textBaseline="middle";
  for(let t=Math.ceil(view[0]/tick)*tick;t<=view[1];t+=tick){const x=X(t,w);g.fillStyle="#eaeef2";g.fillRect(x,RULER-4,1,high-RULER);g.fillStyle="#656d76";g.textAlign="center";if(x<w-24)g.fillText(time(Math.round(t)),x,10)}
  g.textAlign="left";
}
function boxes(g,w,lanes){
  const c=w-LEFT-10;
  for(const l of lanes){
    if(l.group){g.fillStyle="#f6f8fa";g.fillRect(0,l.y,w,GROUP-2);g.fillStyle="#1f2328";g.font="600 11px sans-serif";g.fillText(l.group,8,l.y+GROUP/2-1);g.font="11px sans-serif";continue}
    const high=(l.pale?LANE-6:LANE)-3;g.fillStyle="#656d76";g.fillText(l.label,14,l.y+high/2);
    g.save();g.beginPath();g.rect(LEFT,l.y-2,c+8,high+6);g.clip();let edge=-1,edgeColour="";
    const box=(start,end,k,alpha)=>{
      const r=runs[k],red=$("path").checked&&onPath.has(k)&&!l.parts;if(end<view[0]||start>view[1])return;
      const x=X(start,w),wide=X(end,w)-x,fill=colour(N[r[OP]],alpha);
      if(wide<1){const at=Math.floor(x);if(at===edge&&fill===edgeColour&&!red)return;edge=at;edgeColour=fill}
      g.fillStyle=fill;g.fillRect(x,l.y,Math.max(wide,.8),high);
      if(wide>4){g.strokeStyle="rgba(31,35,40,.18)";g.lineWidth=1;g.strokeRect(x+.5,l.y+.5,wide-1,high-1)}
      if(red){g.fillStyle="#c4302b";g.fillRect(x,l.y+high-2.5,Math.max(wide,1.2),2.5)}
      if(wide>26){g.fillStyle="#1f2328";const text=N[r[OP]]+(wide>170?"  "+N[r[NAME]]:"");let s=text;if(g.measureText(s).width>wide-6){const fit=Math.floor((wide-6)/6.2);s=text.slice(0,fit)}g.fillText(s,Math.max(x,LEFT)+4,l.y+high/2-(l.pale?0:.5))}
    };
    if(l.runs)for(const k of l.runs)box(runs[k][START],runs[k][END],k,l.pale?.35:1);
    else for(const p of l.parts)box(p[BEGUN],p[DONE],p[0],.55);
    if(l.thread&&$("switches").checked)for(const[t,a,b,p]of step.off_cpu)if(t===l.thread&&b>=view[0]&&a<=view[1]){const x=X(a,w);g.fillStyle=OFF_COLOUR[p];g.fillRect(x,l.y,Math.max(X(b,w)-x,.8),3)}
    g.restore();
  }
}
function arrow(g,w,x1,y1,x2,y2,style,width){if(x1<LEFT&&x2<LEFT||x1>w&&x2>w)return;g.strokeStyle=g.fillStyle=style;g.lineWidth=width;g.beginPath();g.moveTo(x1,y1);const bend=Math.max(14,Math.abs(x2-x1)/2);g.bezierCurveTo(x1+bend,y1,x2-bend,y2,x2,y2);g.stroke();g.beginPath();g.moveTo(x2,y2);g.lineTo(x2-6,y2-3);g.lineTo(x2-6,y2+3);g.fill()}
function links(g,w,lanes,places){ // of the chosen op
  if(chosen<0)return;const r=runs[chosen],l=places.get(chosen),middle=k=>{const l=places.get(k);return l?l.y+(l.pale?6:9):0};
  if(l){g.fillStyle="rgba(196,48,43,.18)";const a=X(r[READY],w),b=X(r[START],w);if(b-a>.5)g.fillRect(a,l.y,b-a,LANE-3);
    g.strokeStyle="#1f2328";g.lineWidth=2;g.strokeRect(X(r[START],w)-1,l.y-1,Math.max(2,X(r[END],w)-X(r[START],w))+2,(l.pale?LANE-6:LANE)-1)}
  for(const f of r[INPUTS])if(places.has(f))arrow(g,w,X(runs[f][END],w),middle(f),X(r[FREE]<r[END]?r[END]:r[START],w),middle(chosen),"#0b62c4",1.5);
  for(const t of readers[chosen])if(places.has(t))arrow(g,w,X(r[END],w),middle(chosen),X(runs[t][START],w),middle(t),"#1a7f37",1);
}
function queueing(g,w,lanes,places){
  if(!$("queue").checked)return;
  for(const l of lanes)if(l.parts){const seen=l.parts.filter(p=>p[DONE]>=view[0]&&p[ASKED]<=view[1]);if(seen.length>300)continue;
    for(const p of seen){const from=places.get(p[0]);if(from)arrow(g,w,X(p[ASKED],w),from.y+9,X(p[BEGUN],w),l.y+6,"rgba(191,105,20,.8)",1)}}
}
function draw(){
  const[g,w]=surface($("timeline"),height),c=w-LEFT-10;
  ruler(g,w,height);boxes(g,w,lanes);
  g.save();g.beginPath();g.rect(LEFT,RULER,c+8,height);g.clip();
  const middle=k=>{const l=places.get(k);return l?l.y+(l.pale?6:9):0};
  if($("arrows").checked)runs.forEach((r,k)=>{if(/Recv$/.test(N[r[OP]]))for(const f of r[INPUTS])if(/Send$/.test(N[runs[f][OP]]))arrow(g,w,X(runs[f][END],w),middle(f),X(r[END],w),middle(k),"rgba(80,60,160,.55)",1)});
  queueing(g,w,lanes,places);links(g,w,lanes,places);
  const base=height-6,most=Math.max(1,step.peak.bytes),my=b=>base-(MEMORY-22)*b/most;
  g.beginPath();g.moveTo(X(0,w),base);let last=0;for(const[t,b]of step.memory){g.lineTo(X(t,w),my(last));g.lineTo(X(t,w),my(b));last=b}g.lineTo(X(step.length,w),my(last));g.lineTo(X(step.length,w),base);g.fillStyle="rgba(26,127,55,.22)";g.fill();g.strokeStyle="#1a7f37";g.lineWidth=1;g.stroke();
  const px=X(step.peak.at,w);g.fillStyle="#1a7f37";g.fillRect(px-1,my(most)-3,2,6);g.restore();
  g.fillStyle="#656d76";g.fillText("memory of outputs",14,base-MEMORY/2+4);g.fillText("peak "+size(step.peak.bytes),14,base-MEMORY/2+20);
  overview();close();detail();
}
// The whole step, whatever the timeline shows: of each device how busy its threads were.
function overview(){
  const range=view,devices=DATA.devices.map((name,d)=>({name,d})).filter(o=>runs.some(r=>r[DEVICE]===o.d)),high=RULER+devices.length*ROW+6;
  const[g,w]=surface($("overview"),high),columns=Math.max(1,Math.floor(w-LEFT-10));
  view=[0,Math.max(step.length,1)];ruler(g,w,high);
  devices.forEach(({name,d},i)=>{
    const busy=new Float64Array(columns+1),threads=new Set(),span=view[1]/columns;
    const add=(thread,a,b)=>{threads.add(thread);for(let x=Math.floor(a/span);x<=Math.min(columns,b/span);x++)busy[x]+=Math.max(0,Math.min(b,(x+1)*span)-Math.max(a,x*span))/span};
    for(const r of runs)if(r[DEVICE]===d&&r[FREE]>=r[END])add(r[THREAD],r[START],r[END]);
    for(const p of step.parts)if(runs[p[0]][DEVICE]===d)add(p[1],p[BEGUN],p[DONE]);
    const base=RULER+(i+1)*ROW-2;g.fillStyle="#656d76";g.fillText(name.replace(/^.*\/device:/,"")+", "+threads.size+(threads.size===1?" thread":" threads"),14,base-ROW/2);
    g.fillStyle="#0b62c4";for(let x=0;x<columns;x++){const h=(ROW-4)*Math.min(1,busy[x]/threads.size);if(h>0)g.fillRect(LEFT+x,base-h,1,h)}
    g.fillStyle="#d8dee4";g.fillRect(LEFT,base,columns,1);
  });
  const a=X(range[0],w),b=X(range[1],w);view=range;
  g.fillStyle="rgba(101,109,118,.12)";g.fillRect(LEFT,RULER-4,Math.max(0,a-LEFT),high);g.fillRect(b,RULER-4,Math.max(0,w-10-b),high);g.strokeStyle="#1f2328";g.lineWidth=1;g.strokeRect(Math.max(a,LEFT)+.5,RULER-3.5,Math.max(2,Math.min(b,w-10)-Math.max(a,LEFT))-1,high-RULER);
}
// The chosen op with what it waited for and who waited for it, on a scale of its own.
function close(){
  if(chosen<0){surface($("close"),0);return}
  const r=runs[chosen],near=new Set([chosen,...r[INPUTS],...readers[chosen]]),kept=view,own=[];let y=RULER;
  for(const l of lanes){const runs=l.runs&&l.runs.filter(k=>near.has(k)),parts=l.parts&&l.parts.filter(p=>p[0]===chosen);
    if(runs&&runs.length||parts&&parts.length){own.push({...l,y,runs:runs,parts:parts});y+=(l.pale?LANE-6:LANE)+4}}
  const from=Math.min(r[READY],...r[INPUTS].map(k=>runs[k][END]),r[START]),to=Math.max(r[END],...step.parts.filter(p=>p[0]===chosen).map(p=>p[DONE])),margin=Math.max(.6*(r[END]-r[START]),200);
  view=[Math.max(from-margin,r[START]-5*margin,0),to+margin];
  const[g,w]=surface($("close"),y+4),at=placesOf(own);ruler(g,w,y+4);boxes(g,w,own);
  g.save();g.beginPath();g.rect(LEFT,RULER,w-LEFT-2,y);g.clip();queueing(g,w,own,at);links(g,w,own,at);g.restore();view=kept;
}
function at(e){const b=$("timeline").getBoundingClientRect();return[e.clientX-b.left,e.clientY-b.top,b.width]}
const when=(x,w)=>view[0]+(x-LEFT)/(w-LEFT-10)*(view[1]-view[0]);
function hit(x,y,w){const l=lanes.find(l=>!l.group&&y>=l.y&&y<l.y+(l.pale?LANE-6:LANE));if(!l||x<LEFT)return-1;
  if(l.parts){const t=when(x,w),p=l.parts.find(p=>t>=p[BEGUN]&&t<=p[DONE]);return p?p[0]:-1}
  const slack=2*(view[1]-view[0])/w,t=when(x,w);let best=-1,near=slack;
  for(const k of l.runs){const r=runs[k],d=t<r[START]?r[START]-t:t>r[END]?t-r[END]:0;if(d<=near&&(d<near||best<0||r[END]-r[START]<runs[best][END]-runs[best][START])){near=d;best=k;if(d===0&&!l.pale)break}}return best}
function zoom(factor,x,w){const t=when(x,w),span=Math.min(Math.max((view[1]-view[0])*factor,50),step.length*1.02),part=(t-view[0])/(view[1]-view[0]);let a=t-part*span;a=Math.max(-.01*step.length,Math.min(a,step.length*1.01-span));view=[a,a+span];draw()}
const offCpu=(r,before)=>[PREEMPTED,ASLEEP].map((f,i)=>r[f]>=1000?`${before}its thread was ${OFF[1-i]} for ${time(r[f])} of it`:"").join("");
function tell(k){const r=runs[k];return`${N[r[NAME]]}\n${N[r[OP]]}, ${time(r[END]-r[START])} from ${time(r[START])}`+(r[START]-r[READY]>=1000?`\nwaited ${time(r[START]-r[READY])}: ${N[r[WAIT]]}`:"")+(r[HELPED]?`\nother threads helped for ${time(r[HELPED])}`:"")+offCpu(r,"\n")+(r[MADE]?`\nmade ${size(r[MADE])}`:"")}
function detail(){if(chosen<0){$("detail").innerHTML="<span style='color:var(--soft)'>No op is chosen. Red below an op: it is on the critical path.</span>";return}
  const r=runs[chosen],list=a=>a.length?a.slice(0,12).map(k=>esc(N[runs[k][NAME]])).join(", ")+(a.length>12?" and "+(a.length-12)+" more":""):"nothing in this step";
  $("detail").innerHTML=`<b>${esc(N[r[NAME]])}</b> (${esc(N[r[OP]])}) on ${esc(DATA.devices[r[DEVICE]])}, ${esc(step.threads[r[THREAD]]||"no thread")}<br>ready at ${time(r[READY])}, began at ${time(r[START])}, took ${time(r[END]-r[START])}`+
    (r[FREE]<r[END]?" (waiting by itself, without a thread)":"")+(r[START]-r[READY]>=1000?`; waited ${time(r[START]-r[READY])} before: ${esc(N[r[WAIT]])}`:"")+(r[HELPED]?`; other threads did ${time(r[HELPED])} of its work`:"")+offCpu(r,"; ")+(r[MADE]?`; made ${size(r[MADE])}`:"")+
    `<br>waited for: ${list(r[INPUTS])}<br>was waited for by: ${list(readers[chosen])}`}
function show(k){chosen=k;const r=runs[k],w=Math.max(4*(r[END]-r[START]),step.length/40);if(r[END]<view[0]||r[START]>view[1]||r[END]-r[START]<(view[1]-view[0])/400){const m=(r[START]+r[END])/2;view=[m-w/2,m+w/2]}draw();$("timeline").scrollIntoView({block:"center",behavior:"smooth"})}
const line=$("timeline");let drag=null,moved=0;
line.addEventListener("wheel",e=>{e.preventDefault();const[x,,w]=at(e);zoom(Math.exp(Math.max(-60,Math.min(60,e.deltaY))*.006),x,w)},{passive:false});
line.addEventListener("mousedown",e=>{drag=[e.clientX,...view];moved=0});
window.addEventListener("mouseup",()=>drag=null);
line.addEventListener("mousemove",e=>{const[x,y,w]=at(e);if(drag){const d=(drag[0]-e.clientX)/(w-LEFT-10)*(drag[2]-drag[1]);moved+=Math.abs(e.movementX);const span=drag[2]-drag[1],a=Math.max(-.01*step.length,Math.min(drag[1]+d,step.length*1.01-span));view=[a,a+span];draw();return}
  const k=hit(x,y,w),tip=$("tip");if(k<0){tip.style.display="none";return}tip.textContent=tell(k);tip.style.display="block";tip.style.left=Math.min(e.clientX+14,window.innerWidth-tip.offsetWidth-8)+"px";tip.style.top=e.clientY+16+"px"});
line.addEventListener("mouseleave",()=>$("tip").style.display="none");
line.addEventListener("click",e=>{if(moved>4)return;chosen=hit(...at(e));draw()});
const whole=$("overview");let brush=null;
const instant=e=>{const b=whole.getBoundingClientRect();return Math.max(0,Math.min(1,(e.clientX-b.left-LEFT)/(b.width-LEFT-10)))*step.length};
whole.addEventListener("mousedown",e=>{brush=instant(e)});
window.addEventListener("mousemove",e=>{if(brush===null)return;const t=instant(e);if(Math.abs(t-brush)>=step.length/400){view=[Math.min(brush,t),Math.max(brush,t)];draw()}});
window.addEventListener("mouseup",()=>brush=null);
$("in").onclick=()=>{const w=line.clientWidth;zoom(.5,(w+LEFT)/2,w)};$("out").onclick=()=>{const w=line.clientWidth;zoom(2,(w+LEFT)/2,w)};$("fit").onclick=()=>{view=[0,step.length];draw()};
$("arrows").onchange=$("path").onchange=$("switches").onchange=$("queue").onchange=draw;
document.addEventListener("click",e=>{const row=e.target.closest("tr.go");if(row)show(+row.dataset.go)});
$("choice").innerHTML=DATA.steps.map((s,i)=>`<option value="${i}">${esc(s.name)}: ${time(s.length)}</option>`).join("");
$("choice").onchange=e=>load(+e.target.value);const index=()=>DATA.steps.indexOf(step);
$("before").onclick=()=>load(Math.max(0,index()-1));$("after").onclick=()=>load(Math.min(DATA.steps.length-1,index()+1));
$("bars").onclick=e=>load(Math.min(DATA.steps.length-1,Math.floor(e.offsetX/$("bars").clientWidth*DATA.steps.length)));
window.addEventListener("resize",()=>{draw();bars()});
$("about").textContent=DATA.about;load(DATA.first);
</script></body></html>
"""
