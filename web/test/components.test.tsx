import { renderToString } from 'preact-render-to-string';
import { describe, expect, test, vi } from 'vitest';

vi.stubGlobal('matchMedia', () => ({ matches: false }));
const { Gauge } = await import('../src/pages/budgets/gauge.tsx');
const { Chart } = await import('../src/ui/chart.tsx');

describe('components', () => {
  test('a gauge says in words what its bar shows', () => {
    const period = { spent_usd: 9, limit_usd: 10, period_start: '2026-03-01T00:00:00Z', reset: '2026-03-02T00:00:00Z' };
    const html = renderToString(<Gauge label="Today" period={period} reserved={0.5} />);
    expect(html).toContain('class="gauge near"');
    expect(html).toContain('aria-valuetext="$9.00 of $10.00"');
    expect(html).toContain('style="width:90%;"');
  });

  test('a chart is a figure with the same figures in a table', () => {
    const html = renderToString(
      <Chart
        title="Decisions"
        atMs={[0, 60_000]}
        format={String}
        lines={[
          { label: 'allow', colour: '--a', values: [3, null] },
          { label: 'deny', colour: '--b', values: [1, 2] },
        ]}
      />,
    );
    expect(html).toContain('<figure class="chart panel" aria-label="Decisions">');
    expect(html).toContain('<th scope="col">allow</th><th scope="col">deny</th>');
    expect(html).toContain('<td>3</td><td>1</td>');
    expect(html).toContain('<td>–</td><td>2</td>');
  });
});
