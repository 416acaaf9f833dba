// Keeps a live page up to date, and adds the reader's own time to each time. Every page says all
// of it without this.
(() => {
  'use strict';
  const live = document.body.dataset.live;
  const says = document.getElementById('live');
  let lost; // a timer, or true once it was said

  const ages = () => {
    for (const t of document.querySelectorAll('time[datetime]')) {
      const at = new Date(t.dateTime), s = Math.round((Date.now() - at) / 1000), n = Math.abs(s);
      const [by, unit] = n < 60 ? [1, 's'] : n < 3600 ? [60, 'min'] : n < 172800 ? [3600, 'h'] : [86400, 'd'];
      const age = Math.floor(n / by) + ' ' + unit;
      t.dataset.age = s < 0 ? 'in ' + age : age + ' ago';
      t.title = at.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'long' });
      if (s < 0 && at.getTimezoneOffset() !== 0) t.dataset.here = at.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit', hour12: false }) + ' here';
    }
  };
  const connected = () => {
    clearTimeout(lost);
    lost = undefined;
    says.className = 'live on';
    says.textContent = 'live';
  };
  const gone = () => {
    lost ??= setTimeout(() => {
      says.className = 'live lost';
      says.textContent = 'connection lost: what you see is old';
    }, 5000);
  };

  let busy = false, again = false;
  const refresh = async () => {
    if (busy || document.hidden) { again = true; return; }
    busy = true;
    again = false;
    let pause = 400;
    try {
      const answer = await fetch(location.href, { cache: 'no-store' });
      if (answer.redirected || answer.status === 401) return location.reload();
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
        Idiomorph.morph(document.getElementById('main'), page.getElementById('main'), {
          callbacks: { beforeAttributeUpdated: (name, node) => !(name === 'open' && node.tagName === 'DETAILS') },
        });
        document.title = page.title;
        const icon = page.querySelector('link[rel=icon]').getAttribute('href'), has = document.querySelector('link[rel=icon]');
        if (has.getAttribute('href') !== icon) has.setAttribute('href', icon);
        document.body.className = page.body.className;
        ages();
      } else throw answer; // too many ask, or the daemon is busy
    } catch { again = true; pause = 2000; }
    setTimeout(() => { busy = false; if (again) refresh(); }, pause);
  };
  const watch = () => {
    const stream = new EventSource(document.body.dataset.stream ?? '/v1/stream');
    stream.onopen = () => { connected(); refresh(); };
    for (const kind of ['status', 'journal', 'reset']) stream.addEventListener(kind, refresh);
    stream.onerror = () => {
      gone();
      if (stream.readyState === EventSource.CLOSED) setTimeout(watch, 2000);
    };
  };

  const most = 2000;
  const follow = async (log) => {
    try {
      const answer = await fetch(log.dataset.follow);
      if (answer.status === 401) return location.reload();
      if (answer.ok) {
        connected();
        const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let rest = '', first = true; ;) {
          const { value, done } = await reader.read();
          if (done) break;
          if (first) log.replaceChildren();
          first = false;
          const lines = (rest + value).split('\n');
          rest = lines.pop();
          const end = innerHeight + scrollY >= document.body.offsetHeight - 40;
          log.append(...lines.map((line) => {
            const [, who, , at, text] = /^(.*?)( \| )(\S+) ?(.*)$/.exec(line) ?? [null, '', '', '', line];
            const item = document.createElement('li');
            for (const [name, part] of [['who', who], ['at', at.slice(11, 19)], ['text', text]]) {
              const span = document.createElement('span');
              span.className = name;
              span.textContent = part.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]/g, '').replace(/[\p{Cc}\p{Cf}\ufffd]/gu, ' ');
              item.append(span);
            }
            return item;
          }));
          while (log.children.length > most) log.firstChild.remove();
          if (end) scrollTo(0, document.body.scrollHeight);
        }
      }
    } catch { /* it is asked again */ }
    gone();
    setTimeout(() => follow(log), 2000);
  };

  ages();
  setInterval(ages, 10000);
  document.addEventListener('visibilitychange', () => { if (!document.hidden && again) refresh(); });
  if (live === 'status') watch();
  if (live === 'logs') { scrollTo(0, document.body.scrollHeight); follow(document.getElementById('log')); }
})();
