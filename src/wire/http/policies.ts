/** Policies: which are in force, and put new ones in force (contract: HTTP shapes). */
import { ok } from '../../core/result.ts';
import type { Link } from '../../threads/io-link.ts';
import { readPage, rfc3339 } from './body.ts';
import type { Authorized, HttpReply, Route } from './route.ts';
import { policyPage, policyReload } from './shapes.ts';

async function list({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const page = readPage(query);
  if (!page.ok) return page;
  const listed = await link.call('listPolicies', { principal, ...page.value });
  if (!listed.ok) return listed;
  const { version, loadedAtMs, documents, nextCursor } = listed.value;
  const views = documents.map(({ name, scope, ruleCount, source }) => ({ name, scope, rule_count: ruleCount, source }));
  return ok({ status: 200, body: { version, loaded_at: rfc3339(loadedAtMs), documents: views, next_cursor: nextCursor } });
}

async function reload({ principal }: Authorized, link: Link): Promise<HttpReply> {
  const reloaded = await link.call('reloadPolicies', { principal });
  return reloaded.ok ? ok({ status: 200, body: reloaded.value }) : reloaded;
}

export const policyRoutes: readonly Route[] = [
  { method: 'get', path: '/api/v1/policies', access: { scope: 'read' }, summary: 'Shows the policy documents in force', query: ['per_page', 'cursor'], answers: { 200: policyPage }, handle: list },
  { method: 'post', path: '/api/v1/policies/reload', access: { scope: 'admin' }, summary: 'Reads the policy files again and puts them in force, all or none', answers: { 200: policyReload }, handle: reload },
];
