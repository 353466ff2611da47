/** Charts of a load as SVG, which needs no script and nothing from the network. */
import type { Measured } from './open-loop.ts';

type Point = { readonly x: number; readonly y: number };
type Line = { readonly name: string; readonly colour: string; readonly points: readonly Point[] };
type Tick = { readonly at: number; readonly text: string };
type Chart = {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly xTicks: readonly Tick[];
  readonly yTicks: readonly Tick[];
};

const WIDTH = 860;
const HEIGHT = 300;
const LEFT = 64;
const RIGHT = 20;
const TOP = 34;
const BOTTOM = 34;
const MAX_POINTS = 300;
const BLUE = '#2f6fde';
const ORANGE = '#d97706';
const RED = '#c2364a';
const GREEN = '#2e8b57';

const PERCENTILES: readonly (readonly [share: number, text: string])[] = [
  [0, '0 %'],
  [0.5, '50 %'],
  [0.9, '90 %'],
  [0.99, '99 %'],
  [0.999, '99.9 %'],
  [0.9999, '99.99 %'],
  [0.99999, '99.999 %'],
  [1, 'all'],
];

/** Each further nine is as far from the last, as far as one check of a million. */
const ninesOf = (share: number): number => -Math.log10(Math.max(1e-6, 1 - share));

export const curveChart = ({ curve }: Measured): string =>
  chart({
    title: 'Wait by percentile, in milliseconds',
    lines: [{ name: 'wait', colour: BLUE, points: curve.map(({ share, ms }) => ({ x: ninesOf(share), y: ms })) }],
    xTicks: PERCENTILES.map(([share, text]) => ({ at: ninesOf(share), text })),
    yTicks: niceTicks(Math.max(...curve.map(({ ms }) => ms))),
  });

export function waitsChart({ seconds }: Measured): string {
  const line = (name: 'p50' | 'p99' | 'longest', colour: string): Line => ({
    name,
    colour,
    points: thinned(seconds.map((second, at) => ({ x: at + 1, y: second[name] }))),
  });
  return chart({
    title: 'Waits of each second, in milliseconds',
    lines: [line('longest', RED), line('p99', ORANGE), line('p50', BLUE)],
    xTicks: secondTicks(seconds.length),
    yTicks: niceTicks(Math.max(...seconds.map(({ longest }) => longest))),
  });
}

export function rateChart({ seconds }: Measured): string {
  const line = (name: 'due' | 'answered' | 'errors' | 'waiting', colour: string): Line => ({
    name,
    colour,
    points: thinned(seconds.map((second, at) => ({ x: at + 1, y: second[name] }))),
  });
  return chart({
    title: 'Checks of each second',
    lines: [line('due', '#8a94a6'), line('answered', GREEN), line('waiting', ORANGE), line('errors', RED)],
    xTicks: secondTicks(seconds.length),
    yTicks: niceTicks(
      Math.max(...seconds.map(({ due, answered, errors, waiting }) => Math.max(due, answered, errors, waiting))),
    ),
  });
}

/** The highest of neighbouring values, so that rare ones stay visible. */
function thinned(points: readonly Point[]): readonly Point[] {
  const width = Math.ceil(points.length / MAX_POINTS);
  if (width <= 1) return points;
  return Array.from({ length: Math.ceil(points.length / width) }, (_, nth) =>
    points.slice(nth * width, (nth + 1) * width).reduce((most, point) => (point.y > most.y ? point : most)),
  );
}

/** Zero to a round number above `most`, in four or five steps. */
function niceTicks(most: number): readonly Tick[] {
  const raw = Math.max(most, 0.001) / 4;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((each) => each >= raw) ?? raw;
  const count = Math.max(1, Math.ceil(most / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, nth) => {
    const at = nth * step;
    return { at, text: Number(at.toPrecision(6)).toLocaleString('en') };
  });
}

const secondTicks = (count: number): readonly Tick[] =>
  niceTicks(Math.max(1, count))
    .filter(({ at }) => Number.isInteger(at) && at <= count)
    .map(({ at }) => ({ at, text: `${at} s` }));

function chart({ title, lines, xTicks, yTicks }: Chart): string {
  const xs = [...lines.flatMap(({ points }) => points.map(({ x }) => x)), ...xTicks.map(({ at }) => at)];
  const mostX = Math.max(...xs);
  const mostY = Math.max(...yTicks.map(({ at }) => at));
  const x = (value: number): string => (LEFT + (value / (mostX || 1)) * (WIDTH - LEFT - RIGHT)).toFixed(1);
  const y = (value: number): string => (HEIGHT - BOTTOM - (value / (mostY || 1)) * (HEIGHT - TOP - BOTTOM)).toFixed(1);
  return [
    `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">`,
    `<text class="title" x="${LEFT}" y="18">${title}</text>`,
    ...yTicks.map(
      ({ at, text }) =>
        `<line class="grid" x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(at)}" y2="${y(at)}"/><text x="${LEFT - 8}" y="${y(at)}" dy="4" text-anchor="end">${text}</text>`,
    ),
    ...xTicks.map(
      ({ at, text }) => `<text x="${x(at)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${text}</text>`,
    ),
    ...lines.map(
      ({ colour, points }) =>
        `<polyline fill="none" stroke="${colour}" stroke-width="2" stroke-linejoin="round" points="${points.map((point) => `${x(point.x)},${y(point.y)}`).join(' ')}"/>`,
    ),
    ...(lines.length === 1
      ? []
      : lines.map(
          ({ name, colour }, nth) =>
            `<rect x="${WIDTH - RIGHT - (lines.length - nth) * 88}" y="9" width="12" height="3" fill="${colour}"/><text x="${WIDTH - RIGHT - (lines.length - nth) * 88 + 18}" y="16">${name}</text>`,
        )),
    '</svg>',
  ].join('\n');
}
