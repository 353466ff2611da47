/** What became of a call of a webhook, and who may know why it has failed. */

export type Delivery = { readonly isDelivered: true } | Failure;
export type Failure = {
  readonly isDelivered: false;
  readonly reason: string;
  /** What those are told who are bound to an org, where the reason speaks of the network of the gateway. */
  readonly shown?: string;
};

/** Why the call has failed, for an admin of that org; null: for those who see every org. */
export const reasonFor = (orgId: string | null, { reason, shown = reason }: Omit<Failure, 'isDelivered'>): string =>
  orgId === null ? reason : shown;
