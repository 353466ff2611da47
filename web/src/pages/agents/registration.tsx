/** Registering agents, replacing their tokens, and removing them. */
import { useState } from 'preact/hooks';
import type { Agent, AgentName } from '../../base/api-types.ts';
import { agentName, plural } from '../../base/format.ts';
import { Problem, queryOf } from '../../base/request.ts';
import { boundOrg, call } from '../../session/session.ts';
import { ask, FormDialog, openDialog, showSecret } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/fields.tsx';
import { Parts } from '../../ui/names.tsx';
import { notify } from '../../ui/notices.tsx';

/** The agent as it is registered now: a list may be old. */
export async function findAgent({ org_id, team_id, agent_id }: AgentName): Promise<Agent | undefined> {
  let cursor: string | null = null;
  do {
    const page: { agents: readonly Agent[]; next_cursor: string | null } = await call(
      'GET',
      `/api/v1/agents${queryOf({ org_id, team_id, agent_id, per_page: 1_000, cursor })}`,
    );
    const found = page.agents.find((known) => known.org_id === (org_id ?? ''));
    if (found !== undefined) return found;
    cursor = page.next_cursor;
  } while (cursor !== null);
  return undefined;
}

async function issueToken({ org_id, team_id, agent_id }: AgentName): Promise<void> {
  const answer = await call('POST', '/api/v1/agents', { agent: { org_id, team_id, agent_id } });
  showSecret(
    'Agent token',
    <>
      <Parts text={agentName(answer.agent)} /> sends this token with every call. Copy it now: it will not be shown
      again.
    </>,
    answer.credential_token,
  );
}

export const askRegistration = (onDone: () => Promise<void>): void =>
  openDialog((onClose) => <RegistrationDialog onClose={onClose} onDone={onDone} />);

type DialogProps = { readonly onClose: () => void; readonly onDone: () => Promise<void> };

function RegistrationDialog({ onClose, onDone }: DialogProps) {
  const [names, setNames] = useState({ org_id: boundOrg() ?? '', team_id: '', agent_id: '' });
  const set = (name: keyof typeof names) => (value: string) => setNames((before) => ({ ...before, [name]: value }));
  const register = async (): Promise<void> => {
    const agent = { org_id: names.org_id.trim(), team_id: names.team_id.trim(), agent_id: names.agent_id.trim() };
    // Registering an agent again would revoke the token that it works with.
    if ((await findAgent(agent)) !== undefined)
      throw new Problem(0, {
        detail: 'This agent is already registered. To replace its token, use “New token” on its page.',
      });
    await issueToken(agent);
    onClose();
    await onDone();
  };
  return (
    <FormDialog title="Register an agent" submit="Register" onSubmit={register} onClose={onClose}>
      <TextField
        label="Org"
        value={names.org_id}
        onValue={set('org_id')}
        hint="Optional. Other orgs cannot see this agent."
        readOnly={boundOrg() !== null}
        maxLength={256}
      />
      <TextField label="Team" value={names.team_id} onValue={set('team_id')} required maxLength={256} />
      <TextField label="Agent" value={names.agent_id} onValue={set('agent_id')} required maxLength={256} />
    </FormDialog>
  );
}

export const askRotation = (agent: AgentName): void =>
  ask({
    title: 'Create a new token for this agent?',
    text: 'Its current token stops working immediately.',
    subject: <Parts text={agentName(agent)} />,
    confirm: 'Create new token',
    onConfirm: () => issueToken(agent),
  });

export function askRemoval(agent: AgentName, activeOps: number, onDone: () => void): void {
  const [one, them] = activeOps === 1 ? ['stays', 'it'] : ['stay', 'them'];
  const open =
    activeOps === 0
      ? ''
      : ` Its ${plural(activeOps, 'operation')} in flight ${one} open. Terminate ${them} first: a removed agent cannot be told to stop.`;
  ask({
    title: 'Remove this agent?',
    text: `Its token stops working immediately, and all its checks are denied.${open}`,
    subject: <Parts text={agentName(agent)} />,
    confirm: 'Remove',
    onConfirm: async () => {
      const path = [agent.org_id || '-', agent.team_id, agent.agent_id].map(encodeURIComponent).join('/');
      await call('DELETE', `/api/v1/agents/${path}`);
      notify(`${agentName(agent)} was removed.`);
      onDone();
    },
  });
}
