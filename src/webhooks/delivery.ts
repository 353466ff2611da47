/** The result of a call of a webhook, and who may know why it has failed. */

export type Delivery = { readonly isDelivered: true } | Failure;
export type Failure = {
  readonly isDelivered: false;
  readonly reason: string;
  /** The reason for readers bound to an org, if the full one tells of the gateway's network. */
  readonly shown?: string;
};

/** Why the call has failed, for an admin of that org; null: for those who see every org. */
export const reasonFor = (orgId: string | null, { reason, shown = reason }: Omit<Failure, 'isDelivered'>): string =>
  orgId === null ? reason : shown;
