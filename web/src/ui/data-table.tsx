/** A list of the API as a table; on a narrow screen each row is a card, with every value under its name. */
import type { ComponentChildren } from 'preact';
import { Empty } from './names.tsx';
import type { Pages } from './resource.ts';

export type Column<T> = {
  readonly title: string;
  readonly cell: (row: T) => ComponentChildren;
  readonly class?: string;
  /** Its content names the row. */
  readonly isName?: boolean;
};

type TableProps<T> = {
  readonly label: string;
  readonly columns: readonly (Column<T> | false)[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly classOf?: (row: T) => string;
};

export function DataTable<T>({ label, columns, rows, keyOf, classOf }: TableProps<T>) {
  const shown = columns.filter((column) => column !== false);
  return (
    <table class="cards" aria-label={label}>
      <thead>
        <tr>
          {shown.map(({ title, class: kind = '' }) => (
            <th key={title} scope="col" class={kind}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} class={classOf?.(row) ?? ''}>
            {shown.map(({ title, class: kind = '', cell, isName }) =>
              isName ? (
                <th key={title} scope="row" class={kind} data-label={title}>
                  {cell(row)}
                </th>
              ) : (
                <td key={title} class={kind} data-label={title}>
                  {cell(row)}
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

type ListProps<T> = Omit<TableProps<T>, 'rows'> & { readonly pages: Pages<T>; readonly empty: ComponentChildren };

/** With what there is to say while it is read, where it cannot be, and where more can be. */
export function PagedTable<T>({ pages, empty, ...table }: ListProps<T>) {
  return (
    <div class="panel scroll">
      {pages.rows.length > 0 && <DataTable rows={pages.rows} {...table} />}
      <ListNote pages={pages} empty={empty} />
    </div>
  );
}

type NoteProps = { readonly pages: Pages<unknown>; readonly empty: ComponentChildren };

export function ListNote({ pages, empty }: NoteProps) {
  const { rows, data, error, hasMore, isReadingMore, more, reload } = pages;
  return (
    <>
      {rows.length === 0 && <Empty>{error || (data === undefined ? 'Loading…' : empty)}</Empty>}
      {rows.length > 0 && error !== '' && (
        <p class="form-error pad" role="status">
          These rows may be out of date: {error}
        </p>
      )}
      {error !== '' && (
        <button type="button" class="more" onClick={reload}>
          Try again
        </button>
      )}
      {hasMore && (
        <button type="button" class="more" aria-busy={isReadingMore} onClick={more}>
          {isReadingMore ? 'Loading…' : 'Load more'}
        </button>
      )}
    </>
  );
}
