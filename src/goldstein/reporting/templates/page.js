"use strict";
(() => {
  const root = document.documentElement;
  const report = document.getElementById("report");
  const key = "goldstein-theme";
  const remembered = (() => { try { return localStorage.getItem(key); } catch { return null; } })();
  if (remembered === "dark" || remembered === "light") root.dataset.theme = remembered;

  document.getElementById("theme").addEventListener("click", () => {
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const next = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    root.dataset.theme = next;
    try { localStorage.setItem(key, next); } catch { /* a page from disk may have no storage */ }
  });

  const words = { unknown: NaN, infinite: Infinity, "minus infinite": -Infinity };
  const asNumber = (text) => text in words ? words[text] : text === "" ? NaN : Number(text.replace(/ %$/, ""));
  const compare = (a, b) => {
    const x = asNumber(a), y = asNumber(b);
    if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
    if (!Number.isNaN(x)) return x < y ? -1 : x > y ? 1 : 0;
    return a.localeCompare(b);
  };
  const sort = (button) => {
    const heading = button.closest("th");
    const body = button.closest("table").tBodies[0];
    const column = heading.cellIndex;
    const up = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const text = (row) => row.cells[column].textContent.trim();
    const rows = [...body.rows].sort((a, b) => compare(text(a), text(b)));
    body.append(...(up ? rows : rows.reverse()));
  };

  const copy = async (button) => {
    const source = document.getElementById(button.dataset.copy);
    let done = true;
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      done = document.execCommand("copy");
    }
    const said = button.firstChild;
    said.data = done ? "Copied" : "Press Ctrl-C";
    setTimeout(() => { said.data = "Copy"; }, 2000);
  };

  report.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button && button.matches("th button")) sort(button);
    if (button && button.matches(".copy")) copy(button);
  });

  // The proof inside this page is decided here, off the main thread; nothing is sent anywhere.
  const file = document.getElementById("proof-file");
  const verdict = document.getElementById("proof-verdict");
  const decide = () => {
    const progress = document.getElementById("proof-progress");
    const source = document.getElementById("checker").textContent
      + "\nonmessage = ({data}) => postMessage(goldstein.judge(data, share => postMessage({share})));";
    const say = ({ verdict: word, why, formula }) => {
      verdict.textContent = `${word}: ${why}.`;
      verdict.classList.add(word === "TRUE" ? "good" : "bad");
      const shown = document.getElementById("proof-function");
      shown.textContent = formula;
      shown.hidden = !formula;
      progress.hidden = true;
    };
    verdict.textContent = "Checking ...";
    verdict.classList.remove("good", "bad");
    progress.hidden = false;
    try {
      const bytes = Uint8Array.from(atob(file.getAttribute("href").split(",")[1]), (c) => c.charCodeAt(0));
      const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
      worker.onmessage = ({ data }) => { if (data.verdict) say(data); else progress.value = data.share; };
      worker.onerror = (failure) => say({ verdict: "UNREADABLE", why: failure.message, formula: "" });
      worker.postMessage(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    } catch (failure) {
      say({ verdict: "UNREADABLE", why: failure.message, formula: "" });
    }
  };
  if (file) {
    document.getElementById("proof-check").addEventListener("click", decide);
    if (file.href.length < 3e6) decide();
  }

  // A live page asks for news; without an answer the run and its server have ended.
  const live = document.body.dataset.live;
  if (!live) return;
  const state = document.getElementById("live-state");
  let seen = 0;  // the page as it was loaded
  const show = (news) => {
    const open = [...report.querySelectorAll("details[open]")].map((d) => d.id);
    const focused = document.activeElement && document.activeElement.id;
    report.innerHTML = news.html;
    for (const id of open) if (id) document.getElementById(id)?.setAttribute("open", "");
    if (focused) document.getElementById(focused)?.focus();
    document.title = news.title;
  };
  const ask = async () => {
    let news;
    try {
      const answer = await fetch(`${live}?seen=${seen}`, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.statusText);
      news = await answer.json();
    } catch {
      state.textContent = "the run has ended";
      return;
    }
    if (news.version !== seen) { seen = news.version; show(news); }
    state.textContent = news.done ? "the run has ended" : "running";
    if (!news.done) setTimeout(ask, 500);
  };
  ask();
})();
