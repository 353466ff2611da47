/** Registered agents: who may ask, and the tokens they ask with. */
import { keepInAddress, whenSet } from '../address.js';
import { Problem, query } from '../api.js';
import { confirm, formDialog, mayAsk, showSecret } from '../dialogs.js';
import { button, field, h, parts, searchInput, viewHead } from '../dom.js';
import { agentName, ago, count, dateTime, plural, SLASH } from '../format.js';
import { attempt, notify } from '../notices.js';
import { PagedTable } from '../paged-table.js';
import { call, can, current } from '../session.js';
import { operationsLink } from './operations-link.js';

const PER_PAGE = 100;

/** @typedef {PagedTable<any>} List */

/** @param {URLSearchParams} asked what the address wants to see */
export function agentsView(asked) {
  const boundTo = current()?.orgId ?? null;
  const org = searchInput('All orgs');
  const team = searchInput('All teams');
  const agentId = searchInput('All agents');
  keepInAddress('#/agents', asked, { ...(boundTo === null ? { org_id: org } : {}), team_id: team, agent_id: agentId });
  /** @type {List} */
  const list = new PagedTable({
    perPage: PER_PAGE,
    label: 'Registered agents',
    columns: ['Agent', 'Parent', 'Registered', 'Last seen', 'In flight', ''],
    numbers: ['In flight'],
    empty: () =>
      [org, team, agentId].every(({ value }) => value.trim() === '')
        ? `No agents yet.${can('write') ? ' Use Register agent to add one.' : ''}`
        : 'No agents match. Enter full names.',
    load: async (cursor, perPage) => {
      const page = await call(
        'GET',
        `/api/v1/agents${query([
          ['org_id', boundTo === null ? org.value.trim() : ''],
          ['team_id', team.value.trim()],
          ['agent_id', agentId.value.trim()],
          ['per_page', perPage],
          ['cursor', cursor],
        ])}`,
      );
      return { rows: page.agents, next: page.next_cursor };
    },
    render: (agent) => agentRow(agent, list),
  });
  const reload = () => attempt(list.reload);
  whenSet([org, team, agentId], reload);
  void reload();
  const element = h(
    'section',
    { class: 'view' },
    viewHead(
      'Agents',
      button('Refresh', reload),
      can('write') && button('Register agent', () => openRegistration(boundTo, list), { class: 'solid' }),
    ),
    h(
      'div',
      { class: 'filters' },
      boundTo === null ? field('Org', org) : null,
      field('Team', team),
      field('Agent', agentId),
    ),
    list.element,
  );
  return { element, renew: list.renew };
}

/** @param {any} agent @param {List} list */
const agentRow = (agent, list) =>
  h(
    'tr',
    null,
    h('td', { class: 'strong' }, parts(agentName(agent), SLASH)),
    h('td', null, agent.parent),
    h('td', { class: 'nowrap', title: dateTime(agent.registered_at) }, ago(agent.registered_at)),
    h('td', { class: 'nowrap', title: dateTime(agent.last_seen_at) }, ago(agent.last_seen_at)),
    h(
      'td',
      { class: 'number' },
      agent.active_ops === 0 ? '0' : operationsLink(agent, count(agent.active_ops), undefined, 'active'),
    ),
    h(
      'td',
      { class: 'row-actions' },
      can('write')
        ? [
            button('New token', () => rotate(agent, list), {
              class: 'small',
              'aria-label': `New token for ${agentName(agent)}`,
            }),
            button('Remove', () => remove(agent, list), {
              class: 'small danger',
              'aria-label': `Remove ${agentName(agent)}`,
            }),
          ]
        : null,
    ),
  );

/** @param {string | null} boundTo the only org that may be chosen @param {List} list */
function openRegistration(boundTo, list) {
  const inputs = { org_id: nameInput(boundTo ?? ''), team_id: nameInput(''), agent_id: nameInput('') };
  if (boundTo !== null) inputs.org_id.readOnly = true;
  inputs.org_id.required = false;
  formDialog({
    title: 'Register an agent',
    submit: 'Register',
    fields: [
      field('Org', inputs.org_id, 'Optional. Other orgs cannot see this agent.'),
      field('Team', inputs.team_id),
      field('Agent', inputs.agent_id),
    ],
    onSubmit: async () => {
      const agent = {
        org_id: inputs.org_id.value.trim(),
        team_id: inputs.team_id.value.trim(),
        agent_id: inputs.agent_id.value.trim(),
      };
      // Registering an agent again would revoke the token that it works with.
      if ((await find(agent)) !== undefined)
        throw new Problem(0, {
          detail: 'This agent is already registered. To replace its token, use “New token” in the list.',
        });
      if (!inputs.agent_id.isConnected) return; // called off before anything was changed
      await issueToken(agent, list);
    },
  });
}

/** @param {string} value */
const nameInput = (value) =>
  h('input', { type: 'text', required: true, value, autocomplete: 'off', spellcheck: 'false', maxlength: 256 });

/** @param {any} agent @param {List} list */
async function issueToken({ org_id, team_id, agent_id }, list) {
  const answer = await call('POST', '/api/v1/agents', { agent: { org_id, team_id, agent_id } });
  showSecret({
    title: 'Agent token',
    text: [
      parts(agentName(answer.agent), SLASH),
      ' sends this token with every call. Copy it now: it will not be shown again.',
    ],
    secret: answer.credential_token,
  });
  await attempt(list.reload);
}

/** The agent as it is registered now: the list may be old. @param {any} agent */
async function find({ org_id, team_id, agent_id }) {
  let cursor = null;
  do {
    const page = await call(
      'GET',
      `/api/v1/agents${query([
        ['org_id', org_id],
        ['team_id', team_id],
        ['agent_id', agent_id],
        ['per_page', PER_PAGE],
        ['cursor', cursor],
      ])}`,
    );
    const found = page.agents.find((/** @type {any} */ known) => known.org_id === org_id);
    if (found !== undefined) return found;
    cursor = page.next_cursor;
  } while (cursor !== null);
  return undefined;
}

/** @param {any} agent @param {List} list */
async function rotate(agent, list) {
  const isMeant = await confirm({
    title: 'Create a new token for this agent?',
    text: 'Its current token stops working immediately.',
    subject: parts(agentName(agent), SLASH),
    confirm: 'Create new token',
  });
  if (isMeant) await attempt(() => issueToken(agent, list));
}

/** @param {any} agent @param {List} list */
async function remove(agent, list) {
  let opCount = 0;
  const isRead = await attempt(async () => {
    opCount = (await find(agent))?.active_ops ?? 0;
  });
  if (!isRead || !mayAsk(list.element)) return;
  const open =
    opCount === 0
      ? ''
      : ` Its ${plural(opCount, 'operation')} in flight ${opCount === 1 ? 'stays' : 'stay'} open. Terminate ${opCount === 1 ? 'it' : 'them'} first: a removed agent cannot be told to stop.`;
  const isMeant = await confirm({
    title: 'Remove this agent?',
    text: `Its token stops working immediately, and all its checks are denied.${open}`,
    subject: parts(agentName(agent), SLASH),
    confirm: 'Remove',
  });
  if (!isMeant) return;
  const path = [agent.org_id === '' ? '-' : agent.org_id, agent.team_id, agent.agent_id]
    .map(encodeURIComponent)
    .join('/');
  if (await attempt(() => call('DELETE', `/api/v1/agents/${path}`)))
    notify([
      parts(agentName(agent), SLASH),
      ' was removed.',
      ...(opCount === 0 ? [] : [' It left ', operationsLink(agent, plural(opCount, 'operation')), ' open.']),
    ]);
  await attempt(list.refresh);
}
