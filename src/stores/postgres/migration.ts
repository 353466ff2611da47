/** A numbered step of the schema. Released steps are never changed; later changes are new steps. */
export type Migration = {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  /**
   * A release whose newest step is this one, or a later one, works on with what this step has changed, so that gateways
   * can be upgraded one after the other. Without it, releases that do not know the step refuse the database. Only of
   * steps after 14, which has made the place for it.
   */
  readonly toleratedSince?: number;
};
