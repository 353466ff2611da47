import { describe, expect, test } from 'vitest';
import { formatPolicyScope, parsePolicyScope } from '../../../src/core/policy/scope.ts';

describe('policy scope', () => {
  test.each([
    ['global', { tier: 'global' }],
    ['org:acme', { tier: 'org', orgId: 'acme' }],
    ['team:acme/search', { tier: 'team', orgId: 'acme', teamId: 'search' }],
    ['agent:acme/search/crawler', { tier: 'agent', orgId: 'acme', teamId: 'search', agentId: 'crawler' }],
    ['org:acme:eu', { tier: 'org', orgId: 'acme:eu' }],
  ])('%s is a scope, and is written as it was', (text, scope) => {
    const parsed = parsePolicyScope(text);
    expect(parsed).toEqual(scope);
    expect(parsed === undefined ? undefined : formatPolicyScope(parsed)).toBe(text);
  });

  test.each([
    '',
    'Global',
    'global:',
    'org',
    'orgs',
    'org:',
    'org:-',
    'org:ac me',
    'org:acme/search',
    'org:acme/search/crawler',
    'user:acme',
    'teams',
    'team:acme',
    'team:acme/',
    'team:/search',
    'team:-/search',
    'team:acme/sea rch',
    'team:acme/..',
    'team:acme/search/crawler',
    'user:acme/search',
    'agent:acme',
    'agent:acme/search',
    'agent:acme/search/',
    'agent:/search/crawler',
    'agent:acme//crawler',
    'agent:acme/search/craw\u0007ler',
    'agent:acme/search/crawler/1',
    'user:acme/search/crawler',
  ])('%j is not a scope: no policy reaches further than its author wrote', (text) => {
    expect(parsePolicyScope(text)).toBeUndefined();
  });
});
