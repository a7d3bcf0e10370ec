// Everything here is comfort: without it the pages read the same and every form works.
"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // The theme: as the system has it, light, dark.
  const themes = ["system", "light", "dark"];
  const showTheme = () => {
    const name = byId("theme-name");
    if (name) name.textContent = root.dataset.theme || "system";
  };
  const nextTheme = () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length];
    if (next === "system") {
      delete root.dataset.theme;
      localStorage.removeItem("theme");
    } else {
      root.dataset.theme = next;
      localStorage.setItem("theme", next);
    }
    showTheme();
  };
  showTheme();
  byId("theme")?.addEventListener("click", nextTheme);

  // Whether what is shown is what is so.
  const words = { open: "live", lost: "reconnecting", waiting: "connecting" };
  const connection = (state) => {
    const shown = byId("connection");
    if (!shown || shown.dataset.state === state) return;
    shown.dataset.state = state;
    shown.querySelector(".text").textContent = words[state];
  };
  document.addEventListener("htmx:sse:after:connection", () => connection("open"));
  document.addEventListener("htmx:sse:error", () => connection("lost"));
  document.addEventListener("htmx:sse:before:connection", (event) => {
    if (event.detail.connection.attempt > 0 && !document.hidden) connection("lost");
  });

  // A page fetches itself, as its address is by now, when it is told of a change or a link on it only
  // changes what it shows. It says which parts it has; those that are the same are left out of the
  // answer, and put back before it is merged into the page.
  const here = () => location.pathname + location.search;
  let wantsAll = false;
  document.addEventListener("htmx:config:request", (event) => {
    const { ctx } = event.detail;
    if (ctx.target?.id !== "main") return;
    if (ctx.sourceElement?.id === "main") ctx.request.action = ctx.askedFor = here();
    const parts = wantsAll ? [] : [...document.querySelectorAll("[data-part]")];
    wantsAll = false;
    ctx.request.headers["Interlock-Shown"] = parts.map((part) => part.dataset.part).join(" ");
  });
  document.addEventListener("htmx:before:swap", (event) => {
    const { ctx, tasks = [] } = event.detail;
    const parts = new Map();
    for (const part of document.querySelectorAll("[data-part]")) parts.set(part.dataset.part, part);
    const left = tasks.flatMap(({ fragment }) => [...fragment.querySelectorAll("template[data-same]")]);
    const own = left.map((same) => same.dataset.same.split(" ").map((digest) => parts.get(digest)));
    // Somebody has gone on meanwhile: this answer is to another page, or leaves out what is gone.
    if ((ctx.askedFor && ctx.askedFor !== here()) || own.flat().includes(undefined)) {
      event.preventDefault();
      event.stopImmediatePropagation();
      wantsAll = true;
      htmx.ajax("GET", here(), { source: "#main", target: "#main", select: "#main", swap: "outerMorph", selectOOB: "#pages:outerMorph" });
      return;
    }
    left.forEach((same, at) => same.replaceWith(...own[at].map((part) => part.cloneNode(true))));
  });
  // What is looked at stays where it is: a list that changes keeps its order, and what is new comes on
  // top. Only who asks for the list again gets it sorted anew.
  const keepOrder = (fragment) => {
    for (const table of fragment.querySelectorAll("[data-steady]")) {
      const places = new Map([...document.querySelectorAll("[data-steady] tr[id]")].map((row, at) => [row.id, at]));
      const placeOf = (row) => places.get(row.id) ?? -1;
      for (const body of table.tBodies) {
        body.append(...[...body.rows].filter((row) => row.id).sort((a, b) => placeOf(a) - placeOf(b)));
      }
      const firstOf = (body) => Math.max(...[...body.rows].filter((row) => row.id).map(placeOf));
      table.append(...[...table.tBodies].sort((a, b) => firstOf(a) - firstOf(b)));
    }
  };
  document.addEventListener("htmx:before:swap", (event) => {
    if (event.detail.ctx.sourceElement?.id !== "main") return;
    for (const { fragment } of event.detail.tasks ?? []) keepOrder(fragment);
  });
  const stayWith = (url, source) => htmx.ajax("GET", url, {
    source, target: "#main", select: "#main", swap: "outerMorph", selectOOB: "#pages:outerMorph", push: url,
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-stay]");
    if (!link || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    stayWith(link.getAttribute("href"), link);
  });
  document.addEventListener("htmx:error", (event) => {
    const { ctx } = event.detail;
    if (!ctx || ctx.sourceElement?.id === "main" || ctx.sourceElement?.id === "live") return;
    say("The server does not answer. `interlock up` starts it; then try again.");
  });

  // How much waits, wherever one is: beside the page's name and in the title.
  document.addEventListener("waiting", (event) => {
    const count = Number(event.detail.data);
    for (const badge of document.querySelectorAll("[data-waiting]")) {
      badge.firstChild.data = String(count);
      badge.hidden = !count;
    }
    document.title = (count ? `(${count}) ` : "") + document.title.replace(/^\(\d+\) /, "");
    notify(count);
  });
  let lastCount = Number(document.querySelector("[data-waiting]")?.firstChild.data ?? 0);
  const notify = (count) => {
    const isMore = count > lastCount;
    lastCount = count;
    if (!isMore || localStorage.getItem("notify") !== "on" || Notification.permission !== "granted") return;
    new Notification("Interlock", { body: `${count} waiting for you`, tag: "interlock" });
  };

  // A drawing of what lies around something begins with that in sight.
  const drawing = document.querySelector(".graph.around");
  const middle = drawing?.querySelector("[aria-current]");
  if (middle) {
    drawing.scrollLeft = middle.offsetLeft - (drawing.clientWidth - middle.offsetWidth) / 2;
    drawing.scrollTop = middle.offsetTop - (drawing.clientHeight - middle.offsetHeight) / 2;
  }

  // What was clicked for is in sight and has the focus; the row that leads to it stays where it was.
  const reveal = (place) => {
    if (!place) return;
    place.scrollTop = 0;
    place.focus({ preventScroll: true });
    const { top } = place.getBoundingClientRect();
    if (top < 0 || top > innerHeight * 0.6) place.scrollIntoView({ block: "start" });
  };
  const showCurrentRow = (block) => {
    const row = document.querySelector("#outline [aria-current]");
    if (row?.offsetParent) row.scrollIntoView({ block });
  };
  let pressed = null;
  document.addEventListener("htmx:before:swap", (event) => {
    const link = event.detail.ctx.sourceElement;
    if (link?.matches?.("a[data-stay]")) pressed = { link, top: link.getBoundingClientRect().top };
  });
  document.addEventListener("htmx:after:swap", () => {
    if (!pressed) return;
    const { link, top } = pressed;
    pressed = null;
    if (link.isConnected && link.offsetParent) {
      const pane = link.closest(".pane");
      const moved = link.getBoundingClientRect().top - top;
      if (pane && pane.scrollHeight > pane.clientHeight) pane.scrollTop += moved;
      else scrollBy(0, moved);
    }
    const place = link.dataset.stay && document.querySelector(link.dataset.stay);
    if (place) {
      reveal(place);
      showCurrentRow("nearest");
    }
  });
  addEventListener("load", () => {
    if (location.hash) reveal(document.getElementById(location.hash.slice(1)));
    if (location.hash === "#node") showCurrentRow("center");
  });

  // Times are said as ages, durations or local times, and tick. What time ends is counted down, and
  // marked once it is over. The page says by which clock, which is not the browser's.
  const two = (number) => String(number).padStart(2, "0");
  const duration = (ms) => {
    const seconds = Math.max(0, Math.floor(ms / 1000));
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
    if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds / 60) % 60} min`;
    return `${Math.floor(seconds / 86400)} d`;
  };
  const local = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const countdown = (left) => {
    const seconds = Math.floor(left / 1000);
    const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
    if (hours >= 48) return `${Math.floor(hours / 24)} d left`;
    return seconds < 1 ? "ended" : `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)} left`;
  };
  const spoken = {
    ago: (date, now) => `${duration(now - date)} ago`,
    for: (date, now) => `for ${duration(now - date)}`,
    lasts: (date, now) => duration(now - date),
    in: (date, now) => (date > now ? `in ${duration(date - now)}` : "now"),
    clock: (date) => local(date),
  };
  const ahead = new Map();
  const nowBy = (element) => {
    const stamp = element.closest("[data-clock]")?.dataset.clock;
    if (!Number(stamp)) return Date.now();
    if (ahead.size > 100) ahead.clear();
    if (!ahead.has(stamp)) ahead.set(stamp, Date.now() - Number(stamp));
    return Date.now() - ahead.get(stamp);
  };
  const tick = () => {
    for (const one of document.querySelectorAll("time[data-tick]")) {
      const date = new Date(one.dateTime);
      const words = spoken[one.dataset.tick](date, nowBy(one));
      if (one.textContent === words) continue;
      one.textContent = words;
      one.title = local(date);
    }
    for (const one of document.querySelectorAll("[data-until]")) {
      const left = Number(one.dataset.until) - nowBy(one);
      one.toggleAttribute("data-over", left <= 0);
      if (one.localName === "time") one.textContent = countdown(left);
    }
  };
  // How long each took, beside the longest.
  const drawSpans = () => {
    const spans = [...document.querySelectorAll("rect[data-from]")].map((rect) => [
      rect, Number(rect.dataset.to ?? nowBy(rect)) - Number(rect.dataset.from),
    ]);
    const longest = Math.max(1, ...spans.map(([, ms]) => ms));
    for (const [rect, ms] of spans) rect.setAttribute("width", String(Math.max(4, Math.round((ms * 1000) / longest))));
  };
  tick();
  drawSpans();
  setInterval(() => { tick(); drawSpans(); }, 1000);
  document.addEventListener("htmx:after:swap", () => { tick(); drawSpans(); });

  // Nobody tells a page that time has passed, or that a process has ended: where that matters, it looks.
  setInterval(() => {
    if (!document.hidden && document.querySelector("[data-look-again]")) htmx.trigger("#live", "changed");
  }, 15_000);

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.classList.add("copied");
    button.title = "Copied";
  });

  // A change that cannot be taken back says what it does before it is done.
  // Asked while the event is on its way down: nothing has sent the form yet.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const choice = form.querySelector("option[data-confirm]:checked");
    const question = event.submitter?.dataset.confirm ?? form.dataset.confirm ?? choice?.dataset.confirm;
    if (question && !window.confirm(question)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (choice) form.elements.confirmed.value = "yes";
  }, true);

  // After a change the page stays where it is. What was typed is used up, and the focus stays near: from
  // a card that is gone it goes to the next one, or to the heading after the last.
  let sent = null;
  let answered = null;
  document.addEventListener("htmx:config:request", (event) => {
    const card = event.detail.ctx.sourceElement?.closest?.("form[hx-post]")?.closest("[data-card]");
    if (!card) return;
    const cards = [...document.querySelectorAll("[data-card]")].map((one) => one.id);
    answered = { id: card.id, next: cards.slice(cards.indexOf(card.id) + 1) };
  });
  document.addEventListener("htmx:before:swap", (event) => {
    const { sourceElement } = event.detail.ctx;
    if (sourceElement?.matches("form[hx-post]")) sent = sourceElement;
    for (const { fragment } of event.detail.tasks ?? []) keepTyped(fragment.querySelector("[data-list]"));
  });
  // A card in which somebody writes stays though it was answered elsewhere: the text can be copied, and
  // what is typed next goes nowhere else.
  const isWrittenIn = (card) => [...card.querySelectorAll("textarea, input:not([type=hidden])")].some(
    (one) => one === document.activeElement || one.value !== one.defaultValue,
  );
  const keepTyped = (list) => {
    let before = null;
    for (const card of list ? document.querySelectorAll("[data-card]") : []) {
      let own = list.querySelector(`#${CSS.escape(card.id)}`);
      if (!own && card.id !== answered?.id && isWrittenIn(card)) {
        own = card.cloneNode(true);
        if (!card.hasAttribute("data-stale")) markStale(own);
        if (before) before.after(own);
        else list.prepend(own);
      }
      before = own ?? before;
    }
  };
  const markStale = (card) => {
    card.setAttribute("data-stale", "");
    card.removeAttribute("data-part");
    for (const button of card.querySelectorAll("button")) button.disabled = true;
    const mark = document.createElement("p");
    mark.className = "warned";
    const putAway = document.createElement("button");
    putAway.type = "button";
    putAway.textContent = "Put it away";
    putAway.setAttribute("data-put-away", "");
    mark.append("Answered elsewhere. What you wrote was not sent; it stays here until you put it away. ", putAway);
    (card.querySelector("form") ?? card).prepend(mark);
    say("This was answered elsewhere. What you wrote was not sent.");
  };
  document.addEventListener("click", (event) => {
    const card = event.target.closest?.("[data-put-away]")?.closest("[data-card]");
    if (!card) return;
    card.remove();
    byId("inbox").focus();
  });
  document.addEventListener("htmx:after:swap", () => {
    // The page may be told of the change before the answer to the form is here.
    if (answered && !byId(answered.id)) {
      const next = answered.next.map(byId).find((card) => card);
      reveal(next ?? document.querySelector("[data-card], main h1"));
      answered = null;
    }
    if (!sent) return;
    sent.reset();
    sent.closest("dialog")?.close();
    const answer = byId(sent.dataset.answer);
    // Another card may have been answered before the answer to this form came.
    if (sent.closest("[data-card]")?.id === answered?.id) answered = null;
    sent = null;
    forgetMessage();
    if (document.activeElement === document.body) {
      if (answer) reveal(answer);
      else (byId("control") ?? byId("main")).focus({ preventScroll: true });
    }
  });

  // A message goes after a while.
  let forgetting;
  const forgetMessage = () => {
    clearTimeout(forgetting);
    forgetting = setTimeout(() => byId("said").replaceChildren(), 10_000);
  };
  const say = (text) => {
    const line = document.createElement("p");
    line.className = "wrong";
    line.textContent = text;
    byId("said").replaceChildren(line);
    forgetMessage();
  };
  if (byId("said")?.firstElementChild) forgetMessage();

  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("[data-dialog]");
    if (!link) return;
    event.preventDefault();
    byId(link.dataset.dialog).showModal();
  });

  const help = byId("help");
  byId("help-open")?.addEventListener("click", () => help.showModal());
  const keysOff = byId("keys-off");
  if (keysOff) {
    keysOff.checked = localStorage.getItem("keys") === "off";
    keysOff.addEventListener("change", () => localStorage.setItem("keys", keysOff.checked ? "off" : "on"));
  }

  const notifyMe = byId("notify");
  if (notifyMe) {
    notifyMe.checked = localStorage.getItem("notify") === "on";
    notifyMe.addEventListener("change", async () => {
      if (notifyMe.checked) notifyMe.checked = (await Notification.requestPermission()) === "granted";
      byId("notify-refused").hidden = notifyMe.checked || Notification.permission !== "denied";
      localStorage.setItem("notify", notifyMe.checked ? "on" : "off");
    });
  }

  const links = () => [...document.querySelectorAll("[data-list] .main-link")];
  const move = (by) => {
    const all = links();
    if (!all.length) return;
    const focused = document.activeElement;
    const row = focused.closest("[data-card]") ?? focused.closest("[data-list] li, [data-list] tr");
    const now = all.indexOf(row?.querySelector(".main-link") ?? focused);
    const next = all[Math.min(all.length - 1, Math.max(0, now < 0 ? 0 : now + by))];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  };
  const follow = (selector) => document.querySelector(selector)?.click();
  // Only in the card that has the focus: another one is not what was looked at.
  const onCard = (key) => document.activeElement.closest("[data-card]")?.querySelector(`[data-key=${key}]`);

  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem("keys") === "off") return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const key = event.key;
    if (isGoing) {
      isGoing = false;
      follow(`.rail [data-go="${CSS.escape(key)}"]`);
      return;
    }
    if (key === "g") { isGoing = true; return; }
    const does = {
      "?": () => help.showModal(),
      "/": () => byId("search").focus(),
      j: () => move(1),
      k: () => move(-1),
      t: nextTheme,
      f: () => follow("[data-forks]"),
      "[": () => follow("#node [rel=prev]"),
      "]": () => follow("#node [rel=next]"),
      a: () => onCard("a")?.click(),
      r: () => onCard("r")?.focus(),
    }[key];
    if (!does) return;
    event.preventDefault();
    does();
  });
})();
