import { describe, expect, test } from 'vitest';

// A script of the page: its types are in its comments.
const { OpsModel } = await import(new URL('../../web/ops-model.js', import.meta.url).href);

const frame = (op_home: string | undefined, state: string, updated = 1) => ({
  id: '1',
  event_type: 'ops_change',
  org_id: 'acme',
  agent_id: 'crawler',
  timestamp: '',
  payload: {
    ...{ op_id: 't:s', op_home, state, team_id: 'search' },
    ...{ registered_at: '2026-03-01T12:00:00Z', updated_at: `2026-03-01T12:00:0${updated}Z` },
  },
});
const shown = (model: any): readonly string[] =>
  model
    .list({ orgId: '', state: '', words: [] })
    .map(({ home, state }: { home: unknown; state: string }) => `${home} ${state}`)
    .sort();

describe('operations as the dashboard knows them', () => {
  test('of one id at two gateways are two, each with its own state', () => {
    const model = new OpsModel();
    model.apply(frame('one', 'running'), 0);
    model.apply(frame('two', 'running'), 0);
    model.apply(frame('two', 'paused', 2), 0);
    expect(shown(model)).toEqual(['one running', 'two paused']);
    const [op] = model.list({ orgId: '', state: 'paused', words: [] });
    model.ask(op!.key, 'terminate');
    model.apply(frame('one', 'completing', 3), 0);
    expect(model.get(op!.key)?.asked).toBe('terminate');
    expect(shown(model)).toEqual(['one completing', 'two paused']);
  });

  test('of a gateway alone are one, whatever comes again', () => {
    const model = new OpsModel();
    model.apply(frame(undefined, 'running'), 0);
    model.apply(frame(undefined, 'paused', 2), 0);
    expect(shown(model)).toEqual(['undefined paused']);
  });
});
