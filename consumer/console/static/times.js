// Show times in the reader's zone, and keep ages current by the server's clock. Without this script, times are in UTC.
const showTimes = (() => {
  const { lang, dataset } = document.documentElement;
  // British English writes the day before the month, as the server does.
  const locale = lang === "en" ? "en-GB" : lang;
  // As in consumer/console/i18n.py.
  const UNITS = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];
  const AGES_EVERY_MS = 15000;
  const clock = new Intl.DateTimeFormat(locale, {
    day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
  });
  const zone = new Intl.DateTimeFormat(locale, { timeZoneName: "short" });
  const ago = new Intl.RelativeTimeFormat(locale, { numeric: "always" });
  const aheadMs = Number(dataset.nowMs) - Date.now();

  const zoneAt = (at) => zone.formatToParts(at).find((part) => part.type === "timeZoneName").value;
  const age = (at) => {
    const seconds = (at - Date.now() - aheadMs) / 1000;
    const unit = UNITS.find(([, size]) => Math.abs(seconds) >= size);
    return unit ? ago.format(Math.trunc(seconds / unit[1]), unit[0]) : dataset.justNow;
  };

  const showAges = () => {
    for (const element of document.querySelectorAll("time .age")) {
      const text = age(new Date(element.parentNode.dateTime));
      if (element.textContent !== text) element.textContent = text;
    }
  };
  setInterval(() => { if (!document.hidden) showAges(); }, AGES_EVERY_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) showAges(); });

  // The UTC time becomes the tooltip, which also marks the element as done.
  return () => {
    for (const time of document.querySelectorAll("time[datetime]:not([title])")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const shown = time.querySelector("span") ?? time;
      time.title = shown.textContent;
      shown.textContent = `${clock.format(at)} ${zoneAt(at)}`;
    }
    showAges();
  };
})();
showTimes();
