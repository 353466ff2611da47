import type { CommandOf } from '../commands.ts';

/** The calls other than checks that an agent makes for itself, and the names of their gRPC methods. */
export const METHOD_OF = {
  'complete-op': 'CompleteOp',
  'record-usage': 'RecordUsage',
  'open-control': 'OpControlStream',
  'ack-signal': 'AckOpControl',
  'own-approval': 'WaitApproval',
  'cancel-own-approval': 'CancelApproval',
} as const;
export type OwnCall = CommandOf<keyof typeof METHOD_OF>;
