/** `svc audit verify --peers`: the logs of a cluster, and what each gateway has signed of the others. */
import type { KeyObject } from 'node:crypto';
import { type PeerLog, readPeerLog, sightsOf } from '../../audit-log/peers.ts';
import { type VerifyReport, verifyAuditLog } from '../../audit-log/verify.ts';
import { CliError, EXIT, type ExitStatus } from '../errors.ts';
import type { Globals } from '../invocation.ts';
import { green, red, show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { counted } from '../terminal/words.ts';

type Given = { readonly directory: string; readonly keyPath: string | undefined };
type Ways = {
  readonly globals: Globals;
  readonly isStrict: boolean;
  readonly keyOf: (path: string | undefined) => Promise<KeyObject | undefined>;
  /** Describes a problem with a folder. */
  readonly unreadable: (path: string, error: unknown) => unknown;
};
type Judged = { readonly log: PeerLog; readonly report: VerifyReport; readonly unproven: readonly string[] };

export async function verifyPeers(given: readonly Given[], { globals, isStrict, ...ways }: Ways): Promise<ExitStatus> {
  const logs: PeerLog[] = [];
  // All signed statements are read before any log, which can then be compared with them.
  for (const each of given) logs.push(await read(each, ways));
  refuseTwins(logs);
  const missing = strangersIn(logs);
  const judged: Judged[] = [];
  for (const log of logs) judged.push(await judge(log, logs, isStrict, ways));
  const isWhole = judged.every(({ report, unproven }) => report.ok && unproven.length === 0);
  const isOk = isWhole && (missing.length === 0 || !isStrict);
  await show(globals.output, { ok: isOk, logs: judged.map(valueOf), missing }, () => [
    ...judged.flatMap(linesOf),
    ...(missing.length === 0
      ? []
      : [`${isStrict ? red('UNPROVEN') : 'not compared'}  ${printable(missing.join(', '))}: the log was not given`]),
  ]);
  return isOk ? EXIT.done : EXIT.failed;
}

async function read({ directory, keyPath }: Given, { keyOf, unreadable }: Omit<Ways, 'globals' | 'isStrict'>) {
  const key = await keyOf(keyPath);
  try {
    const log = readPeerLog(directory, key);
    if (log.names.length > 0) return log;
  } catch (error) {
    throw unreadable(directory, error);
  }
  throw new CliError(
    `${printable(directory)} is not the log of a gateway in a cluster: no entry at its end names one`,
    'Verify it by itself, without --peers.',
  );
}

/** A directory that was replaced by a copy of another one would pass for it. */
function refuseTwins(logs: readonly PeerLog[]): void {
  for (const [at, { names, directory }] of logs.entries()) {
    const twin = logs.slice(0, at).find((other) => other.names[0] === names[0]);
    if (twin === undefined) continue;
    throw new CliError(
      `${printable(twin.directory)} and ${printable(directory)} are both the log of gateway ${printable(names[0] ?? '')}`,
      'Give the directory of each gateway once. If one should be that of another gateway, it was replaced.',
    );
  }
}

/** Gateways that others have signed something of, and whose logs are not there to be compared. */
const strangersIn = (logs: readonly PeerLog[]): readonly string[] =>
  [...new Set(logs.flatMap(({ heads }) => heads.map(({ gateway }) => gateway)))]
    .filter((gateway) => !logs.some(({ names }) => names.includes(gateway)))
    .sort();

async function judge(
  log: PeerLog,
  logs: readonly PeerLog[],
  isStrict: boolean,
  { unreadable }: Pick<Ways, 'unreadable'>,
): Promise<Judged> {
  const seenByPeers = sightsOf(
    log,
    logs.filter((other) => other !== log),
  );
  const { directory, key: checkpointKey } = log;
  const report = await verifyAuditLog(directory, { checkpointKey, seenByPeers }).catch((error: unknown) => {
    throw unreadable(directory, error);
  });
  const unproven = [
    ...(checkpointKey === undefined ? ['its key is not beside it, so its signatures were not checked'] : []),
    ...(report.ok && report.peers === undefined ? ['no other gateway has signed any of its present entries'] : []),
  ];
  return { log, report, unproven: isStrict ? unproven : [] };
}

function valueOf({ log, report, unproven }: Judged) {
  const shared = { gateway: log.names[0], directory: log.directory, ok: report.ok && unproven.length === 0 };
  if (!report.ok) return { ...shared, entries: report.entries, first_broken: report.firstBroken };
  const { entries, firstId, head, peers } = report;
  return {
    ...shared,
    entries,
    first_id: firstId,
    head,
    seen_by: peers?.gateways ?? [],
    seen_up_to: peers?.upTo ?? 0,
    seen_at: peers?.at ?? null,
    ...(unproven.length > 0 && { unproven }),
  };
}

function linesOf({ log, report, unproven }: Judged): readonly string[] {
  const name = printable(log.names[0] ?? '');
  if (!report.ok) {
    const { id, problem, detail, segment, line } = report.firstBroken;
    const what = problem === 'forged' ? 'its signatures are forged' : `entry ${id} was ${problem}`;
    const where = segment === '' ? [] : [printable(`        ${log.directory}, ${segment}, line ${line}`)];
    return [`${red('BROKEN')}  ${name}: ${what}: ${printable(detail)}`, ...where];
  }
  const { entries, firstId, head, peers } = report;
  const seen =
    peers === undefined
      ? 'no other gateway has seen it'
      : `seen up to entry ${peers.upTo} by ${printable(peers.gateways.join(', '))}, the last time at ${printable(peers.at)}`;
  return [
    `${unproven.length === 0 ? green('ok') : red('UNPROVEN')}    ${name}: ${counted(entries, 'entry', 'entries')}, unbroken from ${firstId} to ${head.id}; ${seen}`,
    ...unproven.map((reason) => `        ${reason}`),
  ];
}
