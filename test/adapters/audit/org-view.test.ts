import { describe, expect, test } from 'vitest';
import { lineForOrg } from '../../../src/adapters/audit/org-view.ts';

const line = (event: string, payload: string): string =>
  `{"id":7,"event_type":"${event}","lineage":{"org_id":"acme"},"payload":${payload},"hash":"5ac3"}`;

describe('org view', () => {
  test('an org is shown everything of its entries but the amounts of the global caps', () => {
    const amounts = '"spent_usd":799,"reserved_usd":3,"limit_usd":100';
    expect(
      lineForOrg(line('BudgetLimitExceeded', `{"action":"tool.call","tier":"global","period":"daily",${amounts}}`)),
    ).toBe(line('BudgetLimitExceeded', '{"action":"tool.call","tier":"global","period":"daily"}'));
    for (const tier of ['org', 'team', 'agent']) {
      const own = line('BudgetLimitExceeded', `{"tier":"${tier}","period":"daily",${amounts}}`);
      expect(lineForOrg(own)).toBe(own);
    }
  });

  test('what an agent writes into its attributes, and what was changed in the file, is shown as it stands there', () => {
    const lines = [
      line('ActionAllowed', '{"attributes":{"event_type":"BudgetLimitExceeded","payload":{"tier":"global"}}}'),
      line('ActionAllowed', '{"attributes":"\\"event_type\\":\\"BudgetLimitExceeded\\""}'),
      ...['null', '"gone"', '7', '[]', '{}'].map((payload) => line('BudgetLimitExceeded', payload)),
      '{"id":7,"event_type":"BudgetLimitExceeded"}',
    ];
    expect(lines.map(lineForOrg)).toEqual(lines);
  });
});
