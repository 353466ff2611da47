import type { MessagePort } from 'node:worker_threads';
import { stackOf } from '../../core/base/text.ts';
import type { Rates } from '../../core/prices/price.ts';
import { findPrice, highestOfTable, type TablePrice } from './price-table.ts';

export type PriceQuestion =
  | { readonly model: string; readonly provider: string | undefined; readonly nowMs: number }
  | { readonly highestAtMs: number };
export type PriceRequest = { readonly number: number; readonly question: PriceQuestion };
export type PriceReply = {
  readonly number: number;
  readonly answer: TablePrice | Rates | undefined;
  /** Why there is no answer. */
  readonly defect?: string;
};

/** The thread that has the table of prices: to load it takes longer than a check may wait. */
export function runPriceThread(main: MessagePort): void {
  main.on('message', ({ number, question }: PriceRequest) => {
    void answerTo(question)
      .then((answer): PriceReply => ({ number, answer }))
      .catch((error: unknown): PriceReply => ({ number, answer: undefined, defect: stackOf(error) }))
      .then((reply) => main.postMessage(reply));
  });
}

async function answerTo(question: PriceQuestion): Promise<TablePrice | Rates | undefined> {
  return 'highestAtMs' in question
    ? highestOfTable(question.highestAtMs)
    : findPrice(question.model, question.provider, question.nowMs);
}
