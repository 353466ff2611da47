/** The contents of the files that the settings name; plain data, because each I/O thread gets it. */
export type TlsIdentity = {
  readonly cert: string;
  readonly key: string;
  /** Whose certificates clients have to show; undefined: clients show none. */
  readonly clientCa: string | undefined;
  /** All threads have the same, so that a client can resume its session at any; made anew with each identity. */
  readonly ticketKeys: string;
};
