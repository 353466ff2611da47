/** `svc audit verify|export`: proves that a log is whole, and hands it on. */
import { existsSync, fstatSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BrokenEntry, VerifyReport } from '../../audit-log/verify.ts';
import type { KeptStatement } from '../../audit-log/witness/statement.ts';
import type { AuditFilter } from '../../core/audit/audit.ts';
import { codeOf, messageOf } from '../../core/base/text.ts';
import { DECISION_CAUSES } from '../../core/check/cause.ts';
import { CliError, EXIT, type ExitStatus, usageError } from '../errors.ts';
import { shownProgress, writeWhole } from '../files/export-file.ts';
import { fileFault } from '../files/private-folder.ts';
import type { Globals, Invocation } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import type { Query } from '../remote/http.ts';
import { green, red, show } from '../terminal/output.ts';
import { printable, printableLines } from '../terminal/printable.ts';
import { interruptible } from '../terminal/prompt.ts';
import { counted } from '../terminal/words.ts';
import { logQuery, withWholeId } from './logs.ts';

/** Offline, over the data directory of a gateway, running or not, or over a copy of its log. */
export async function verify({ args, options, globals, env }: Invocation): Promise<ExitStatus> {
  const { verifyAuditLog } = await import('../../audit-log/verify.ts');
  const [given = dataDirOf(env), ...others] = args;
  if (options.isSet('peers')) {
    if (options.text('key') !== undefined || options.list('witness').length > 0)
      throw usageError('--peers takes the key of each directory, and no witness', 'Verify that log by itself.');
    const { verifyPeers } = await import('./audit-peers.ts');
    const folders = others.length > 0 ? args : [dataDirOf(env), given];
    const logs = folders.map((each) => ({ directory: logFolderOf(each), keyPath: keyBeside(each) }));
    return verifyPeers(logs, { globals, isStrict: options.isSet('strict'), keyOf: checkpointKeyOf, unreadable });
  }
  if (others.length > 0)
    throw usageError('several folders are verified together only with --peers', 'Give the folder of one log.');
  const directory = logFolderOf(given);
  const checkpointKey = await checkpointKeyOf(options.text('key') ?? keyBeside(given));
  // Read before the log, which then has all that they have seen.
  const witnessed = await witnessedIn(options.list('witness'), options.list('witnessActor'));
  const report = await verifyAuditLog(directory, { checkpointKey, witnessed }).catch((error: unknown) => {
    throw unreadable(directory, error);
  });
  if (report.ok) {
    const isEmpty = report.entries === 0 && report.checkpoints === 0 && report.witnessedUpTo === 0;
    if (isEmpty) throw noLogIn(directory);
    return showWhole(report, {
      directory,
      globals,
      isSigned: checkpointKey !== undefined,
      unproven: options.isSet('strict') ? unprovenIn(report, checkpointKey !== undefined) : [],
    });
  }
  const { entries, firstBroken } = report;
  await show(globals.output, { ok: false, directory, entries, first_broken: firstBroken }, () => [
    ...breakLines(entries, firstBroken),
    ...(checkpointKey === undefined || firstBroken.problem !== 'forged' ? [] : [withoutKey(directory)]),
  ]);
  return EXIT.failed;
}

type Whole = Extract<VerifyReport, { ok: true }>;

/** Nothing is broken; with --strict, something may still be unproven. */
async function showWhole(
  report: Whole,
  {
    directory,
    globals,
    isSigned,
    unproven,
  }: {
    readonly directory: string;
    readonly globals: Globals;
    readonly isSigned: boolean;
    readonly unproven: readonly string[];
  },
): Promise<ExitStatus> {
  const { entries, firstId, head, checkpoints, checkpointedUpTo, checkpointedAt = null, tornBytes } = report;
  const { witnessedUpTo, witnessedAt = null } = report;
  const value = {
    ok: unproven.length === 0,
    directory,
    entries,
    first_id: firstId,
    head,
    checkpoints,
    checkpointed_up_to: checkpointedUpTo,
    checkpointed_at: checkpointedAt,
    signatures_checked: isSigned,
    witnessed_up_to: witnessedUpTo,
    witnessed_at: witnessedAt,
    kept: report.kept,
    torn_bytes: tornBytes,
    ...(unproven.length > 0 && { unproven }),
  };
  const verdict = unproven.length === 0 ? green('ok') : red('UNPROVEN');
  await show(globals.output, value, () => [
    `${verdict}    ${counted(entries, 'entry', 'entries')}, unbroken from ${firstId} to ${head.id}`,
    `head  ${head.hash}`,
    ...(checkpoints === 0
      ? witnessedUpTo === 0
        ? ['no checkpoints: a log that was truncated or rebuilt would look the same']
        : []
      : [
          `${counted(checkpoints, 'checkpoint')} up to entry ${checkpointedUpTo}, the last from ${printable(checkpointedAt ?? '')}${isSigned ? ', signatures checked' : '; check their signatures with --key'}`,
        ]),
    ...(witnessedUpTo === 0
      ? []
      : [`witnessed up to entry ${witnessedUpTo}, the last time at ${printable(witnessedAt ?? '')}`]),
    ...(report.kept === 0
      ? []
      : [
          `${counted(report.kept, 'entry', 'entries')} from before ${firstId}, kept outside the chain${isSigned ? ', as signed' : ''}`,
        ]),
    ...(tornBytes === 0
      ? []
      : [
          `${counted(tornBytes, 'byte')} of an incomplete entry at the end: still being written, or cut off by a crash`,
        ]),
    ...unproven.map((reason) => `        ${reason}`),
  ]);
  return unproven.length === 0 ? EXIT.done : EXIT.failed;
}

/** How far the last entry may be ahead of what a witness has seen. */
const MAX_UNWITNESSED_MS = 3_600_000;

/** Lists the reasons why an unbroken log is not proven as a whole. */
function unprovenIn({ checkpoints, witnessedUpTo, witnessedAt, head, headAt }: Whole, isSigned: boolean): string[] {
  const reasons: string[] = [];
  if (!isSigned) reasons.push('signatures were not checked; give the public key with --key');
  if (checkpoints === 0) reasons.push('there is no checkpoint');
  if (witnessedUpTo === 0)
    reasons.push('no witness vouches for it: who has the key could have cut or rewritten it; give one with --witness');
  else if (Date.parse(headAt ?? '') - Date.parse(witnessedAt ?? '') > MAX_UNWITNESSED_MS)
    reasons.push(
      `the witness has seen entry ${witnessedUpTo} last, at ${printable(witnessedAt ?? '')}; entry ${head.id} is from ${printable(headAt ?? '')}`,
    );
  return reasons;
}

/**
 * Reads statements that witnesses have kept of this log; throws if there are none. Another gateway may be a witness of
 * several logs: then `actors` names the authors of the statements about this one.
 */
async function witnessedIn(paths: readonly string[], actors: readonly string[]): Promise<readonly KeptStatement[]> {
  const statements: KeptStatement[] = [];
  for (const path of paths) {
    const found = await keptAt(path);
    const own = found.filter(({ actor }) => actors.length === 0 || actor === undefined || actors.includes(actor));
    if (own.length === 0) throw unwitnessed(path, actors, found);
    const stated = actorsOf(own);
    if (actors.length === 0 && stated.length > 1)
      throw new CliError(
        `${printable(path)} has checkpoints from ${stated.length} credentials: ${shown(stated)}`,
        'Say with --witness-actor which of them is that of this log.',
      );
    statements.push(...own);
  }
  return statements;
}

async function keptAt(path: string): Promise<readonly KeptStatement[]> {
  const { keptStatements } = await import('../../audit-log/witness/statement.ts');
  const found: KeptStatement[] = [];
  try {
    for await (const statement of keptStatements(path)) found.push(statement);
  } catch (error) {
    throw new CliError(
      `cannot read ${printable(path)}: ${fileFault(error) ?? messageOf(error)}`,
      'Give the file of the witness with --witness, or the data directory of a gateway.',
      { cause: error },
    );
  }
  return found;
}

function unwitnessed(path: string, actors: readonly string[], found: readonly KeptStatement[]): CliError {
  if (found.length > 0)
    return new CliError(
      `${printable(path)} has no checkpoint from ${shown(actors)}`,
      `It has some from ${shown(actorsOf(found))}.`,
    );
  return new CliError(
    `${printable(path)} has no checkpoint in it`,
    'It must have lines as they were sent to a witness: {"id":…,"hash":…,"timestamp":…,"signature":…}, or be the log of a gateway that was sent them.',
  );
}

const actorsOf = (statements: readonly KeptStatement[]): readonly string[] => [
  ...new Set(statements.flatMap(({ actor }) => actor ?? [])),
];

const MAX_SHOWN_ACTORS = 5;
const shown = (actors: readonly string[]): string =>
  printable(actors.slice(0, MAX_SHOWN_ACTORS).join(', ')) + (actors.length > MAX_SHOWN_ACTORS ? ' …' : '');

function breakLines(entries: number, { id, problem, detail, segment, line }: BrokenEntry): readonly string[] {
  // Says nothing about entries: none was checked.
  if (problem === 'forged')
    return [`${red('BROKEN')}  ${segment}, line ${line}, is forged or signed with another key: ${printable(detail)}`];
  const verdict = `${red('BROKEN')}  entry ${id} was ${problem}: ${printable(detail)}`;
  if (segment === '') return [verdict];
  return [
    verdict,
    printable(
      `        ${segment}, line ${line}; ${entries === 0 ? 'no entries before it' : `the ${counted(entries, 'entry', 'entries')} before it ${entries === 1 ? 'is' : 'are'} intact`}`,
    ),
  ];
}

/** The folder of the log has no key beside it. */
const withoutKey = (directory: string): string =>
  printable(`        if the key was replaced, svc audit verify ${directory} checks everything except the signatures`);

const dataDirOf = (env: NodeJS.ProcessEnv): string => env.SVC_DATA_DIR || 'data';

/** A data directory holds its log in `audit`; the folder of the log itself is as good. */
function logFolderOf(path: string): string {
  const inside = join(path, 'audit');
  const folder = existsSync(inside) ? inside : path;
  if (!existsSync(folder)) throw noLogIn(path);
  return folder;
}

const noLogIn = (path: string): CliError =>
  new CliError(
    `no audit log in ${printable(path)}`,
    'Give the data directory of the gateway, or a copy of its audit folder.',
  );

/**
 * The key that a data directory holds itself. Who can rewrite the log can use it too, so a copy kept elsewhere proves
 * more.
 */
function keyBeside(dataDir: string): string | undefined {
  const path = join(dataDir, 'keys', 'audit-checkpoint.pem');
  return existsSync(path) ? path : undefined;
}

async function checkpointKeyOf(path: string | undefined) {
  if (path === undefined) return undefined;
  const { publicKeyOf } = await import('../../audit-log/checkpoint.ts');
  try {
    return publicKeyOf(await readFile(path));
  } catch (error) {
    const fault = fileFault(error);
    if (fault !== undefined)
      throw new CliError(`cannot read ${printable(path)}: ${fault}`, 'Give the key file with --key.', { cause: error });
    throw new CliError(
      `${printable(path)} is not a key for checkpoints`,
      'It must be an Ed25519 key in PEM format, public or private.',
      { cause: error },
    );
  }
}

function unreadable(path: string, error: unknown): unknown {
  const code = codeOf(error);
  if (code === undefined) return error;
  if (code === 'ENOTDIR') return noLogIn(path);
  return new CliError(
    `cannot read ${printable(path)}: ${fileFault(error) ?? code}`,
    'Run the command as the user that owns the log, or on a copy.',
    { cause: error },
  );
}

/** From the gateway, or from a folder with --dir; any size, in constant memory. */
export async function exportLog(invocation: Invocation): Promise<void> {
  const { options } = invocation;
  const format = options.text('format') === 'csv' ? 'csv' : 'ndjson';
  const query = logQuery(options, Date.now());
  const dir = options.text('dir');
  const open = async (): Promise<Readable> => {
    if (dir === undefined) return remoteExport(invocation, query, format);
    const { reader, filter } = await offlineLog(dir, query);
    return Readable.from(reader.export(filter, format));
  };
  const file = options.text('file');
  try {
    if (file !== undefined)
      await writeWhole(file, options.isSet('force'), async () => shownProgress(await open(), format));
    else
      await interruptible(async (signal) => {
        const source = await open();
        if (process.stdout.isTTY === true)
          await pipeline(source, escapingForTerminal(), process.stdout, { end: false, signal });
        // A pipe may lead to the terminal, and progress must not overwrite what is shown there.
        else
          await pipeline(
            fstatSync(process.stdout.fd).isFile() ? shownProgress(source, format) : source,
            process.stdout,
            { end: false, signal },
          );
      });
  } catch (error) {
    throw exportFault(error, file);
  }
}

export async function remoteExport(invocation: Invocation, query: Query, format: string): Promise<Readable> {
  const api = await Api.of(invocation);
  const whole = await withWholeId(api, query);
  return api.stream('/api/v1/logs/export', format === 'csv' ? 'text/csv' : 'application/x-ndjson', {
    ...whole,
    format,
  });
}

/** The log of a data directory, and the search that the options ask for. */
export async function offlineLog(dir: string, query: Query) {
  const { AuditReader } = await import('../../audit-log/reader.ts');
  const { AUDIT_EVENTS } = await import('../../core/audit/audit.ts');
  const asked = query.event_type === undefined ? undefined : String(query.event_type).split(',');
  const eventTypes = asked && AUDIT_EVENTS.filter((event) => asked.includes(event));
  if (asked?.length !== eventTypes?.length)
    throw usageError('unknown event type', `Valid types are ${AUDIT_EVENTS.join(', ')}.`);
  const text = (value: Query[string]): string | undefined => (value === undefined ? undefined : String(value));
  const ms = (value: Query[string]): number | undefined =>
    value === undefined ? undefined : Date.parse(String(value));
  const filter: AuditFilter = {
    orgId: text(query.org_id),
    teamId: text(query.team_id),
    agentId: text(query.agent_id),
    opId: text(query.op_id),
    actor: text(query.actor),
    action: text(query.action),
    resource: text(query.resource),
    policy: text(query.policy),
    ruleId: text(query.rule_id),
    cause: DECISION_CAUSES.find((cause) => cause === query.cause),
    shadow: query.shadow === 'differs' ? query.shadow : undefined,
    eventTypes,
    decision: query.decision === 'allow' || query.decision === 'deny' ? query.decision : undefined,
    sinceMs: ms(query.since),
    untilMs: ms(query.until),
  };
  return { reader: new AuditReader(logFolderOf(dir)), filter };
}

/** Output on a terminal must not control it; what a file or a program gets is left unchanged. */
function escapingForTerminal(): Transform {
  const decoder = new TextDecoder();
  return new Transform({
    transform: (chunk: Buffer, _encoding, done) =>
      done(null, printableLines(decoder.decode(chunk, { stream: true }).replaceAll('\r\n', '\n'))),
    // a character that was cut in its middle shows as one that cannot be read
    flush: (done) => done(null, decoder.decode()),
  });
}

function exportFault(error: unknown, file: string | undefined): unknown {
  const code = codeOf(error);
  if (code === 'EPIPE') return new CliError('the reader of the export closed the pipe');
  const leftBehind =
    file === undefined
      ? 'The output is incomplete; run the command again.'
      : `${printable(file)} is unchanged; run the command again.`;
  if (code === 'ECONNRESET')
    return new CliError('the connection was lost before the export ended', leftBehind, { cause: error });
  if (code === 'ABORT_ERR') return new CliError('the export was interrupted', leftBehind, { status: EXIT.interrupted });
  if (file === undefined || code === undefined) return error;
  switch (code) {
    case 'EEXIST':
      return new CliError(`${printable(file)} already exists`, 'Choose another file, or overwrite it with --force.');
    default:
      return new CliError(`cannot write ${printable(file)}: ${fileFault(error) ?? code}`, undefined, { cause: error });
  }
}
