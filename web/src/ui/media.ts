import { useEffect, useState } from 'preact/hooks';

/** Whether a media query holds now. */
export function useMedia(text: string): boolean {
  const [query] = useState(() => matchMedia(text));
  const [holds, setHolds] = useState(query.matches);
  useEffect(() => {
    const follow = (): void => setHolds(query.matches);
    query.addEventListener('change', follow);
    return () => query.removeEventListener('change', follow);
  }, []);
  return holds;
}
