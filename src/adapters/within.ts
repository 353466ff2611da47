/** What the work comes to, or undefined once the time is up: then it continues, and nobody hears how it ends. */
export function within<T>(timeoutMs: number, work: Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => { timer = setTimeout(() => resolve(undefined), timeoutMs); });
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}
