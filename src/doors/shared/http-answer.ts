/** Parts of every HTTP answer, for the API and Connect alike. */

/** The statuses that the gateway answers with, in the words of RFC 9110: those of Node.js are older for 413 and 422. */
export const STATUS_TEXT = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No Content',
  304: 'Not Modified',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  409: 'Conflict',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  421: 'Misdirected Request',
  422: 'Unprocessable Content',
  423: 'Locked',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
} as const;
export type HttpStatus = keyof typeof STATUS_TEXT;

/** `404 Not Found`, as the socket writes it. */
export const STATUS_LINE = Object.fromEntries(
  Object.entries(STATUS_TEXT).map(([status, text]) => [status, `${status} ${text}`]),
) as Readonly<Record<HttpStatus, string>>;

export type Header = readonly [name: string, value: string];
