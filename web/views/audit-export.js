/** The entries of the audit log that fit the filters, as a file. */
import { query } from '../api.js';
import { button, h, setText } from '../dom.js';
import { attempt } from '../notices.js';
import { call } from '../session.js';

const LABEL = 'Export CSV';

/** @param {() => readonly (readonly [name: string, value: string])[]} chosen what the filters say */
export function exportButton(chosen) {
  const control = button(
    LABEL,
    async () => {
      if (control.ariaDisabled === 'true') return;
      control.ariaDisabled = 'true';
      setText(control, 'Exporting…');
      await attempt(async () =>
        saveFile(
          'audit.csv',
          await call('GET', `/api/v1/logs/export${query([...chosen(), ['format', 'csv']])}`, undefined, true),
        ),
      );
      control.ariaDisabled = 'false';
      setText(control, LABEL);
    },
    { title: 'All entries that match the filters' },
  );
  return control;
}

/** Hands a file to the browser to keep. @param {string} name @param {Blob} content */
function saveFile(name, content) {
  const url = URL.createObjectURL(content);
  h('a', { href: url, download: name }).click();
  // The browser has begun to read it when the click is over, but it is nowhere said that it has.
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
