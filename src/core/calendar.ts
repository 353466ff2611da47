/** Whether there is such a day, written `2026-01-31`. JavaScript takes the 30th of February for the 2nd of March. */
export function isOnCalendar(day: string): boolean {
  const ms = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(day) : Number.NaN;
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(day);
}
