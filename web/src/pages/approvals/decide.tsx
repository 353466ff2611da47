/** Approving and denying, with a reason. */
import type { Approval } from '../../base/api-types.ts';
import { agentName } from '../../base/format.ts';
import { call } from '../../session/session.ts';
import { readStanding } from '../../standing/standing.ts';
import { ask } from '../../ui/dialog.tsx';
import { Parts } from '../../ui/names.tsx';
import { notify } from '../../ui/notices.tsx';

export function askDecision(approval: Approval, verb: 'approve' | 'deny', onDecided: () => void): void {
  const isApproval = verb === 'approve';
  ask({
    title: isApproval ? 'Approve this request?' : 'Deny this request?',
    text: isApproval
      ? 'The agent may do exactly this, with exactly these arguments.'
      : 'The agent is told no, with your reason. One denial decides.',
    subject: (
      <>
        <strong class="mono">
          {approval.action} <bdi>{approval.resource}</bdi>
        </strong>
        <br />
        <Parts text={agentName(approval.agent)} />
      </>
    ),
    confirm: isApproval ? 'Approve' : 'Deny',
    isHarmless: isApproval,
    reason: 'required',
    onConfirm: async (reason) => {
      const answer = await call('POST', `/api/v1/approvals/${encodeURIComponent(approval.id)}/${verb}`, { reason });
      const state: string = answer?.approval?.state ?? '';
      notify(state === 'pending' ? 'Recorded. Another approver must agree.' : isApproval ? 'Approved.' : 'Denied.');
      await readStanding(['approvals']);
      onDecided();
    },
  });
}
