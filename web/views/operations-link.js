/** Links the name of an agent, team or org to its operations in flight: to see them, and to stop them. */
import { query } from '../api.js';
import { h } from '../dom.js';
import { agentName, SLASH } from '../format.js';

/**
 * @param {Parameters<typeof agentName>[0]} agent or a team or an org
 * @param {Node | string} content
 * @param {string | null} [title]
 * @param {string} [state] those only
 */
export function operationsLink(agent, content, title = 'Show operations', state = '') {
  const name = agentName(agent);
  // With the slash an org is meant, and not whatever has its name in it.
  return h(
    'a',
    {
      href: `#/operations${query([
        ['q', name.includes(SLASH) ? name : `${name}${SLASH}`],
        ['state', state],
      ])}`,
      title,
    },
    content,
  );
}
