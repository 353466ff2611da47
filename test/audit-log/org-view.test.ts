import { describe, expect, test } from 'vitest';
import { lineForOrg } from '../../src/audit-log/reader.ts';

const line = (event: string, payload: string): string =>
  `{"id":7,"event_type":"${event}","lineage":{"org_id":"acme"},"payload":${payload},"hash":"5ac3"}`;

describe('org view', () => {
  test('an org sees all of its entries except the amounts of the global caps', () => {
    const amounts = '"spent_usd":799,"reserved_usd":3,"limit_usd":100';
    expect(
      lineForOrg(line('BudgetLimitExceeded', `{"action":"tool.call","tier":"global","period":"daily",${amounts}}`)),
    ).toBe(line('BudgetLimitExceeded', '{"action":"tool.call","tier":"global","period":"daily"}'));
    for (const tier of ['org', 'team', 'agent']) {
      const own = line('BudgetLimitExceeded', `{"tier":"${tier}","period":"daily",${amounts}}`);
      expect(lineForOrg(own)).toBe(own);
    }
  });

  test("an agent's attributes, and edits of the file, are shown as they stand", () => {
    const lines = [
      line('ActionAllowed', '{"attributes":{"event_type":"BudgetLimitExceeded","payload":{"tier":"global"}}}'),
      line('ActionAllowed', '{"attributes":"\\"event_type\\":\\"BudgetLimitExceeded\\""}'),
      ...['null', '"gone"', '7', '[]', '{}'].map((payload) => line('BudgetLimitExceeded', payload)),
      '{"id":7,"event_type":"BudgetLimitExceeded"}',
    ];
    expect(lines.map(lineForOrg)).toEqual(lines);
  });
});
