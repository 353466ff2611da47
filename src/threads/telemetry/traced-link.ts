/** A link whose checks leave a record for the telemetry. Made only where that is on: else a check pays nothing. */
import type { CheckCommand, Command, Replies } from '../../core/commands.ts';
import type { WirePorts } from '../../doors/rpc/ports.ts';
import type { Origin, Recorded } from '../../use-cases/use-cases.ts';
import type { Feed } from './feed.ts';

type Ask = (command: Command, origin?: Origin) => Promise<Recorded<unknown>>;

const nowMs = (): number => performance.timeOrigin + performance.now();

export function tracedLink(link: WirePorts['link'], checks: Pick<Feed<'traces'>, 'add'>): WirePorts['link'] {
  const record = (
    { agent, opId, action, resource, dryRun: isDryRun }: CheckCommand,
    traceparent: string | undefined,
    startMs: number,
    { reply, auditId, home }: Recorded<Replies['check']>,
  ): void => {
    const answer = reply.ok ? reply.value : undefined;
    checks.add({
      traceparent,
      opId,
      orgId: agent.orgId,
      teamId: agent.teamId,
      agentId: agent.agentId,
      action,
      resource,
      isDryRun,
      startMs,
      endMs: nowMs(),
      decision: answer?.decision,
      fault: reply.ok ? undefined : reply.fault.kind,
      cause: answer?.cause,
      reason: answer?.reason,
      policy: answer?.policy,
      ruleId: answer?.ruleId,
      approvalId: answer?.approvalId,
      auditId,
      home: home ?? link.home,
    });
  };
  const askLink = link.ask.bind(link) as Ask;
  const ask: Ask = (command, origin) => {
    const asked = askLink(command, origin);
    if (command.type !== 'check') return asked;
    const traceparent = origin?.traceparent;
    const startMs = nowMs();
    void asked.then((recorded) => record(command, traceparent, startMs, recorded as Recorded<Replies['check']>));
    return asked;
  };
  return {
    get home() {
      return link.home;
    },
    get pending() {
      return link.pending;
    },
    ask: ask as WirePorts['link']['ask'],
    call: (name, input) => link.call(name, input),
  };
}
