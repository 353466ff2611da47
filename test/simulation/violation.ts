/** Invariants at every step, by the names under which a broken one is reported. */
export type Invariant =
  | 'record' // no answer before its record, none lost
  | 'chain' // the log is one unbroken chain
  | 'rollback' // the state is what the log says, also after failed writes
  | 'operation' // operations move along their table only
  | 'budget' // spend is at least what was answered, and at most what was reported
  | 'cap' // nothing is allowed beyond a cap
  | 'halt' // nothing begins or runs that a halt in force covers
  | 'agent' // credentials are those of the last answered registration
  | 'answer' // every request is answered once
  | 'defect'; // nothing throws

export class Violation extends Error {
  override readonly name = 'Violation';
  readonly invariant: Invariant;

  constructor(invariant: Invariant, what: string) {
    super(`${invariant}: ${what}`);
    this.invariant = invariant;
  }
}

export function violation(invariant: Invariant, what: string): never {
  throw new Violation(invariant, what);
}
