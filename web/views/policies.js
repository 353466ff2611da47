/** The policy documents in force. */
import { Problem, query } from '../api.js';
import { button, h, replace, viewHead } from '../dom.js';
import { ago, count, dateTime, plural } from '../format.js';
import { attempt, messageOf, notify } from '../notices.js';
import { PagedTable } from '../paged-table.js';
import { call, can } from '../session.js';

const PER_PAGE = 200;

export function policiesView() {
  const version = h('p', { class: 'hint' });
  const report = h('div', { class: 'report', role: 'status' });
  const list = new PagedTable({
    perPage: PER_PAGE,
    label: 'Policy documents',
    columns: ['Name', 'Scope', 'Rules', 'Source'],
    numbers: ['Rules'],
    empty: 'No policies are in force, so every check is denied. Add policy files, then reload them.',
    load: async (cursor, perPage) => {
      const page = await call(
        'GET',
        `/api/v1/policies${query([
          ['per_page', perPage],
          ['cursor', cursor],
        ])}`,
      );
      replace(
        version,
        'Version ',
        h('span', { class: 'mono' }, page.version),
        `, loaded ${ago(page.loaded_at)} (${dateTime(page.loaded_at)})`,
      );
      return { rows: page.documents, next: page.next_cursor };
    },
    render: (document) =>
      h(
        'tr',
        null,
        h('td', { class: 'strong' }, document.name),
        h('td', { class: 'mono' }, document.scope),
        h('td', { class: 'number' }, count(document.rule_count)),
        h('td', { class: 'mono what' }, document.source),
      ),
  });
  const refresh = () => attempt(list.reload);
  const reloadFiles = async () => {
    replace(report);
    replace(report, await reloadPolicies());
    await refresh();
  };
  void refresh();
  const element = h(
    'section',
    { class: 'view' },
    viewHead(
      'Policies',
      button('Refresh', refresh),
      can('admin') && button('Reload files', reloadFiles, { class: 'solid' }),
    ),
    version,
    report,
    list.element,
  );
  return { element, renew: list.renew };
}

/** Has the gateway read its policy files again. Returns what there is to read about them. */
async function reloadPolicies() {
  try {
    const { changed, documents, warnings } = await call('POST', '/api/v1/policies/reload');
    notify(
      changed
        ? `Policies reloaded: ${plural(documents, 'document')} in force.`
        : 'Policies reloaded: nothing has changed.',
    );
    return warnings.length === 0 ? null : linesPanel('info', 'Warnings', warnings);
  } catch (error) {
    if (error instanceof Problem && Array.isArray(error.body.problems))
      return linesPanel('error', 'Not reloaded: the previous policies stay in force', error.body.problems);
    notify(messageOf(error), 'error');
    return null;
  }
}

/** @param {'info' | 'error'} kind @param {string} title @param {readonly string[]} lines */
const linesPanel = (kind, title, lines) =>
  h(
    'div',
    { class: `panel pad ${kind}` },
    h('h2', null, title),
    h(
      'ul',
      null,
      lines.map((line) => h('li', { class: 'mono' }, line)),
    ),
  );
