/** The entries of the audit log that fit the filters, as a file. */
import { useState } from 'preact/hooks';
import { type Query, queryOf } from '../../base/request.ts';
import { call } from '../../session/session.ts';
import { attempt } from '../../ui/notices.tsx';

/** Hands a file to the browser to keep. */
function saveFile(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // The browser has begun to read it when the click is over, but it is nowhere said that it has.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export function ExportButton({ filter }: { readonly filter: Query }) {
  const [isBusy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    if (isBusy) return;
    setBusy(true);
    await attempt(async () =>
      saveFile(
        'audit.csv',
        await call('GET', `/api/v1/logs/export${queryOf({ ...filter, format: 'csv' })}`, undefined, true),
      ),
    );
    setBusy(false);
  };
  return (
    <button type="button" aria-busy={isBusy} title="All entries that match the filters" onClick={run}>
      {isBusy ? 'Exporting…' : 'Export CSV'}
    </button>
  );
}
