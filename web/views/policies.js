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
    load: async (cursor, perPage, isCurrent) => {
      const page = await call(
        'GET',
        `/api/v1/policies${query([
          ['per_page', perPage],
          ['cursor', cursor],
        ])}`,
      );
      if (isCurrent())
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
    const said = await reloadPolicies();
    if (!report.isConnected) {
      // The view was left meanwhile: that nothing was reloaded must not be missed.
      if (said !== undefined) notify(`${said.title}: ${said.lines[0]}`, said.kind);
      return;
    }
    replace(report, said && linesPanel(said));
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

/** @typedef {{ kind: 'info' | 'error', title: string, lines: readonly string[] }} Report */

/**
 * Has the gateway read its policy files again. Resolves with what there is to read about them.
 *
 * @returns {Promise<Report | undefined>}
 */
async function reloadPolicies() {
  try {
    const { changed, documents, warnings } = await call('POST', '/api/v1/policies/reload');
    notify(
      changed
        ? `Policies reloaded: ${plural(documents, 'document')} in force.`
        : 'Policies reloaded: nothing has changed.',
    );
    return warnings.length === 0 ? undefined : { kind: 'info', title: 'Warnings', lines: warnings };
  } catch (error) {
    if (error instanceof Problem && Array.isArray(error.body.problems))
      return {
        kind: 'error',
        title: 'Not reloaded: the previous policies stay in force',
        lines: error.body.problems,
      };
    notify(messageOf(error), 'error');
    return undefined;
  }
}

/** @param {Report} report */
const linesPanel = ({ kind, title, lines }) =>
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
