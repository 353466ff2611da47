/** Runs a query: a transaction's connection or any free one. */
export type Queryable = {
  query<Row extends object>(
    text: string,
    values?: readonly unknown[],
  ): Promise<{ readonly rows: readonly Row[]; readonly rowCount: number }>;
};
