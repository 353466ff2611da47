// Appends to the log in argv[2] until it cannot, and says on stdout which ids are acknowledged. Runs the built files.
import { writeSync } from 'node:fs';
import { openAuditWriter } from '../../dist/src/audit-log/writer.js';
import { encodeDraft } from '../../dist/src/core/audit/audit-line.js';

const [directory, fsync, behaviour] = process.argv.slice(2);
// A write beyond the limit then fails with EFBIG, as one to a full disk does with ENOSPC, instead of ending the
// process.
process.on('SIGXFSZ', () => {});
const opened = openAuditWriter({ directory, fsync, nowMs: () => Date.now() });
if (!opened.ok) {
  writeSync(1, `locked by ${opened.fault.holder}\n`);
  process.exit(3);
}
const { writer } = opened.value;
const body = encodeDraft(
  {
    eventType: 'ActionAllowed',
    lineage: { orgId: 'acme', teamId: 't', agentId: 'a' },
    actor: 'gateway',
    reason: 'x'.repeat(500),
  },
  Date.now(),
);
for (let size = 1; ; size = (size % 40) + 1) {
  const appended = writer.append(Array(size).fill(body).join('\n'), size);
  if (appended.ok) {
    writeSync(1, `${writer.head().id}\n`);
    continue;
  }
  const smaller = writer.append(body, 1);
  writeSync(
    1,
    `${appended.fault.code} ${appended.fault.kind} head ${writer.head().id} then ${smaller.ok ? 'ok' : smaller.fault.code}\n`,
  );
  if (behaviour === 'until-full') break;
}
writer.close();
