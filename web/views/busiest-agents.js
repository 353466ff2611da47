/** The agents that have the most operations: among thousands, the one that runs away is the first. */
import { button, h, parts, replace } from '../dom.js';
import { agentName, count, SLASH } from '../format.js';
import { holdOf } from '../hold.js';
import { busiestOf } from '../ops-model.js';

/** @typedef {import('../ops-model.js').Op} Op */

const WANTED = 3;

/** @param {(name: string) => unknown} choose wants to see the operations of this agent only */
export function busiestAgents(choose) {
  const names = h('div', { class: 'names', role: 'group', 'aria-labelledby': 'busiest' });
  const places = Array.from({ length: WANTED }, () => {
    const shown = { name: '', opCount: 0 };
    const control = button('', () => choose(shown.name), { class: 'link', hidden: true });
    names.append(control);
    return { shown, control };
  });
  const isHeld = holdOf(() => names, names);
  return {
    element: h(
      'div',
      { class: 'field busiest' },
      h('span', { class: 'label', id: 'busiest' }, 'Busiest agents'),
      names,
    ),
    /** @param {readonly Op[]} ops @param {boolean} isWanted the operator has asked for others */
    show(ops, isWanted) {
      if (!isWanted && isHeld()) return;
      const busiest = busiestOf(ops, WANTED);
      places.forEach(({ shown, control }, index) => {
        const found = busiest[index];
        control.hidden = found === undefined;
        if (found === undefined) return;
        const {
          op: { orgId, teamId, agentId },
          opCount,
        } = found;
        const name = agentName({ org_id: orgId, team_id: teamId, agent_id: agentId });
        if (shown.name === name && shown.opCount === opCount) return;
        Object.assign(shown, { name, opCount });
        replace(control, inTwoLines(name), h('span', { class: 'tag number' }, count(opCount)));
        control.title = name;
      });
    },
  };
}

/** Org and team above the agent, so that they leave it its room. @param {string} name */
function inTwoLines(name) {
  const end = name.lastIndexOf(SLASH);
  return h(
    'span',
    { class: 'name' },
    h('span', null, parts(name.slice(0, end), SLASH), SLASH),
    h('bdi', null, name.slice(end + SLASH.length)),
  );
}
