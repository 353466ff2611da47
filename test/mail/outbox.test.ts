import { describe, expect, test } from 'vitest';
import { Outbox } from '../../src/mail/outbox.ts';
import type { Delivery } from '../../src/mail/smtp.ts';
import { eventually } from '../support/eventually.ts';

const mailTo = (to: string) => ({ to, subject: 'Reset your password', text: 'SECRET-TOKEN' });

describe('outbox', () => {
  test('mail beyond the queue fails at once, and the rest is sent in order', async () => {
    const lines: unknown[] = [];
    const write = (message: string, fields: object = {}): void => void lines.push({ message, ...fields });
    const underWay: { readonly to: string; readonly end: (delivery: Delivery) => void }[] = [];
    const transport = {
      deliver: ({ to }: { readonly to: string }) => new Promise<Delivery>((end) => void underWay.push({ to, end })),
      check: () => Promise.reject(new Error('is not asked')),
      close: () => {},
    };
    const outbox = new Outbox(transport, { info: write, warn: write }, { capacity: 1, concurrency: 1 });
    const first = outbox.send(mailTo('first'));
    await Promise.resolve();
    const second = outbox.send(mailTo('second'));
    await outbox.send(mailTo('third'));
    expect(lines).toEqual([
      { message: 'e-mail not sent: the outbox is full or closed', to: 'third', subject: 'Reset your password' },
    ]);
    underWay[0]?.end({ kind: 'delivered' });
    await first;
    await eventually(() => expect(underWay).toHaveLength(2));
    underWay[1]?.end({ kind: 'failed', cause: 'no such mailbox', retry: false });
    await second;
    expect(underWay.map(({ to }) => to)).toEqual(['first', 'second']);
    expect(lines.slice(1)).toEqual([
      { message: 'e-mail sent', to: 'first', subject: 'Reset your password' },
      { message: 'e-mail not sent; giving up', to: 'second', subject: 'Reset your password', cause: 'no such mailbox' },
    ]);
  });
});
