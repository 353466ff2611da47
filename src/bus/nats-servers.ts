/** Parses SVC_BUS_URL: the servers of NATS that a gateway may connect to, one at a time. */

export type NatsServer = {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** In place of a user with a password. */
  readonly token: string | undefined;
};

const DEFAULT_PORT = 4222;

/**
 * `nats://user:password@a:4222,b:4222`, or `tls://`; a name without a password is a token. Parts that a later server
 * lacks are those of the first. Undefined for anything else, also where only some are to be encrypted.
 */
export function natsServers(text: string): readonly NatsServer[] | undefined {
  const servers: NatsServer[] = [];
  for (const part of text.split(',').map((each) => each.trim())) {
    const [first] = servers;
    const whole = part.includes('://') || first === undefined ? part : `${first.isTls ? 'tls' : 'nats'}://${part}`;
    const server = serverOf(whole);
    if (server === undefined || (first !== undefined && server.isTls !== first.isTls)) return undefined;
    const isNamed = server.user !== undefined || server.token !== undefined;
    servers.push(
      isNamed || first === undefined
        ? server
        : { ...server, user: first.user, password: first.password, token: first.token },
    );
  }
  return servers;
}

function serverOf(text: string): NatsServer | undefined {
  if (!URL.canParse(text)) return undefined;
  const { protocol, hostname, port, username, password, pathname, search, hash } = new URL(text);
  const isBare = (pathname === '' || pathname === '/') && search === '' && hash === '';
  if ((protocol !== 'nats:' && protocol !== 'tls:') || hostname === '' || !isBare) return undefined;
  const [user, secret] = [decoded(username), decoded(password)];
  if (user === undefined || secret === undefined) return undefined;
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? DEFAULT_PORT : Number(port),
    isTls: protocol === 'tls:',
    user: secret === '' ? undefined : user,
    password: secret === '' ? undefined : secret,
    token: secret === '' && user !== '' ? user : undefined,
  };
}

/** Undefined if a percent sign is meant literally. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
