// Retry-After (RFC 9110 section 10.2.3): whole seconds from now, or null where the
// value is none. Date.parse alone would take "7.5" for a day in July.

const YEAR_S = 31536000; // whatever is longer counts as this long
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const TIME = "(?<h>\\d\\d):(?<m>\\d\\d):(?<s>\\d\\d)";
const DATES = [
  `[A-Z][a-z]{2}, (?<day>\\d\\d) (?<month>[A-Z][a-z]{2}) (?<year>\\d{4}) ${TIME} GMT`,
  `[A-Z][a-z]{5,8}, (?<day>\\d\\d)-(?<month>[A-Z][a-z]{2})-(?<year>\\d\\d) ${TIME} GMT`,
  `[A-Z][a-z]{2} (?<month>[A-Z][a-z]{2}) (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})`,
].map((form) => new RegExp(`^${form}$`));

export function retryAfterSeconds(value, nowMs) {
  const text = (value ?? "").trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text), YEAR_S);
  const dateMs = dateOf(text, nowMs);
  if (dateMs === null) return null;
  return Math.min(Math.max(Math.ceil((dateMs - nowMs) / 1000), 0), YEAR_S);
}

function dateOf(text, nowMs) {
  const found = DATES.map((form) => form.exec(text)).find(Boolean)?.groups;
  const month = MONTHS.indexOf(found?.month);
  if (month < 0) return null;
  const year = found.year.length === 2 ? fullYear(Number(found.year), nowMs) : Number(found.year);
  return Date.UTC(year, month, Number(found.day), Number(found.h), Number(found.m), Number(found.s));
}

// Two digits that seem more than 50 years ahead are of the past.
function fullYear(digits, nowMs) {
  const thisYear = new Date(nowMs).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + digits;
  return year > thisYear + 50 ? year - 100 : year;
}
