import type { MessagePort } from 'node:worker_threads';
import type { Rates } from '../../core/prices/price.ts';
import { answerQuestions } from '../thread-link.ts';
import { findPrice, highestOfTable, type TablePrice } from './price-table.ts';

export type PriceQuestion =
  | { readonly model: string; readonly provider: string | undefined; readonly nowMs: number }
  | { readonly highestAtMs: number };
export type PriceAnswer = TablePrice | Rates | undefined;

/** The thread that has the table of prices: to load it takes longer than a check may wait. */
export function runPriceThread(main: MessagePort): void {
  answerQuestions<PriceQuestion, PriceAnswer>(main, (question) =>
    'highestAtMs' in question
      ? highestOfTable(question.highestAtMs)
      : findPrice(question.model, question.provider, question.nowMs),
  );
}
