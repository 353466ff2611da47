import { boundOrg } from '../session/session.ts';
import { TextField } from './fields.tsx';

type OrgFilterProps = {
  readonly value: string;
  readonly onValue: (value: string) => void;
  /** Orgs to choose from. */
  readonly list?: readonly string[];
};

/** Nothing where one org is all that may be seen. */
export const OrgFilter = (props: OrgFilterProps) =>
  boundOrg() === null && <TextField label="Org" type="search" placeholder="All orgs" {...props} />;
