/** Moments, one under the other. */
import { dateTime, duration, shortTime } from '../../base/format.ts';
import { Actor, Empty } from '../../ui/names.tsx';
import type { Moment } from './timeline.ts';

const afterWords = (ms: number): string => (ms < 1_000 ? `+${Math.max(0, ms)} ms` : `+${duration(ms)}`);

export const Timeline = ({ moments }: { readonly moments: readonly Moment[] }) =>
  moments.length === 0 ? (
    <Empty>Nothing is recorded yet.</Empty>
  ) : (
    <ol class="timeline">
      {moments.map(({ key, at, title, detail, by, tone, href, afterMs }) => (
        <li key={key} class={tone}>
          <div>
            <strong>{href === null ? title : <a href={href}>{title}</a>}</strong>
            <span class="when">
              <time dateTime={at} title={dateTime(at)}>
                {shortTime(at)}
              </time>
              {afterMs !== null && <span class="hint"> {afterWords(afterMs)}</span>}
            </span>
          </div>
          {detail !== '' && <p>{detail}</p>}
          {by !== null && (
            <p class="hint">
              by <Actor name={by} />
            </p>
          )}
        </li>
      ))}
    </ol>
  );
