/** A time series as a picture for the eye, and as a table for screen readers. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { clockTime } from '../base/format.ts';
import { useMedia } from './media.ts';

export type Line = {
  readonly label: string;
  /** A variable of style.css. */
  readonly colour: string;
  readonly values: readonly (number | null)[];
  readonly kind?: 'line' | 'area' | 'bars';
};

type ChartProps = {
  readonly title: string;
  readonly atMs: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** The figure beside the title. */
  readonly figure?: ComponentChildren;
  /** Bars are stacked. */
  readonly isStacked?: boolean;
  readonly height?: number;
  readonly empty?: string | undefined;
};

export function Chart(props: ChartProps) {
  const { title, atMs, lines, format, figure, isStacked = false, height = 150, empty } = props;
  return (
    <figure class="chart panel" aria-label={title}>
      <figcaption>
        <span class="chart-title">{title}</span>
        {figure !== undefined && <span class="chart-figure">{figure}</span>}
        <span class="legend" aria-hidden="true">
          {lines.length > 1 &&
            lines.map(({ label, colour }) => (
              <span key={label}>
                <i style={{ background: `var(${colour})` }} />
                {label}
              </span>
            ))}
        </span>
      </figcaption>
      <Plot {...{ atMs, lines, format, isStacked, height }} />
      {empty !== undefined && <p class="chart-empty">{empty}</p>}
      <table class="sr-only">
        <caption>{title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            {lines.map(({ label }) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {atMs.map((ms, at) => (
            <tr key={ms}>
              <th scope="row">{clockTime(ms)}</th>
              {lines.map(({ label, values }) => (
                <td key={label}>{values[at] == null ? '–' : format(values[at])}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </figure>
  );
}

type PlotProps = Required<Pick<ChartProps, 'atMs' | 'lines' | 'format' | 'isStacked' | 'height'>>;

function Plot({ atMs, lines, format, isStacked, height }: PlotProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const [tip, setTip] = useState<number | null>(null);
  const isDark = useMedia('(prefers-color-scheme: dark)');
  const data = dataOf(atMs, lines, isStacked);
  const shape = lines.map(({ label, kind }) => `${label} ${kind}`).join();
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const made = new uPlot(optionsOf(element, lines, format, height, setTip), data, element);
    plot.current = made;
    const watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height }));
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
    };
  }, [isDark, shape, height]);
  useEffect(() => plot.current?.setData(data), [JSON.stringify(data)]);
  const at = tip !== null && tip < atMs.length ? tip : null;
  return (
    <div class="plot" aria-hidden="true">
      <div ref={box} style={{ height: `${height}px` }} />
      {at !== null && (
        <div
          class={`tip ${at > atMs.length / 2 ? 'left' : ''}`}
          style={{ left: `${((at + 0.5) / atMs.length) * 100}%` }}
        >
          <strong>{clockTime(atMs[at] ?? 0)}</strong>
          {lines.map(({ label, colour, values }) => (
            <span key={label}>
              <i style={{ background: `var(${colour})` }} />
              {label} <b>{values[at] == null ? '–' : format(values[at])}</b>
            </span>
          ))}
        </div>
      )}
    </div>
  );
}

/** The first of stacked bars is on top of all others: drawn first, they are covered up to their own part. */
function dataOf(atMs: readonly number[], lines: readonly Line[], isStacked: boolean): uPlot.AlignedData {
  const values = lines.map(({ values: own }, line) =>
    isStacked
      ? own.map((value, at) => lines.slice(line + 1).reduce((sum, other) => sum + (other.values[at] ?? 0), value ?? 0))
      : [...own],
  );
  return [atMs.map((ms) => ms / 1_000), ...values] as uPlot.AlignedData;
}

const pathsOf = ({ kind = 'line' }: Line): uPlot.Series.PathBuilder | undefined =>
  kind === 'bars' ? uPlot.paths.bars?.({ size: [0.72, 28], radius: 0.15 }) : uPlot.paths.spline?.();

/** Bars at both ends are whole: there is room for half a step beside them. */
function aroundBars(plot: uPlot, least: number, most: number, lines: readonly Line[]): uPlot.Range.MinMax {
  const [first = 0, second = first] = plot.data[0];
  const half = lines.some(({ kind }) => kind === 'bars') ? (second - first) / 2 : 0;
  return [least - half, most + half];
}

function optionsOf(
  element: HTMLElement,
  lines: readonly Line[],
  format: (value: number) => string,
  height: number,
  onPoint: (at: number | null) => void,
): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const axis: uPlot.Axis = {
    stroke: colour('--muted'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: Math.max(element.clientWidth, 10),
    height,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { setScale: false }, points: { size: 6 } },
    scales: {
      x: { range: (plot, least, most) => aroundBars(plot, least, most, lines) },
      y: { range: (_plot, _least, most) => [0, most > 0 ? most * 1.15 : 1] },
    },
    hooks: {
      setCursor: [({ cursor }) => onPoint(cursor.left == null || cursor.left < 0 ? null : (cursor.idx ?? null))],
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 30,
        gap: 8,
        values: (_plot, splits) => splits.map((secs) => clockTime(secs * 1_000)),
        space: 84,
      },
      { ...axis, size: 52, space: 32, values: (_plot, splits) => splits.map((value) => format(value)) },
    ],
    series: [
      {},
      ...lines.map((line): uPlot.Series => {
        const stroke = colour(line.colour);
        const paths = pathsOf(line);
        const isBars = line.kind === 'bars';
        return {
          label: line.label,
          stroke,
          width: isBars ? 0 : 2,
          // A lone value is no line.
          points: { show: !isBars && line.values.filter((value) => value !== null).length < 3, size: 6 },
          spanGaps: false,
          ...(paths === undefined ? {} : { paths }),
          ...(isBars ? { fill: stroke } : line.kind === 'area' ? { fill: `${stroke}28` } : {}),
        };
      }),
    ],
  };
}
