/** Whether a date such as `2026-01-31` exists. JavaScript reads the 30th of February as the 2nd of March. */
export function isOnCalendar(day: string): boolean {
  const ms = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}
