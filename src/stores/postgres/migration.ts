/** One numbered step of the schema. One that has been released is never changed; what comes later is a new step. */
export type Migration = { readonly number: number; readonly name: string; readonly sql: string };
