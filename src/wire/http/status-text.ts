/** Status lines as the socket writes them. */
export const STATUS_LINE: Readonly<Record<number, string>> = {
  200: '200 OK', 201: '201 Created', 202: '202 Accepted', 204: '204 No Content', 304: '304 Not Modified',
  400: '400 Bad Request', 401: '401 Unauthorized', 403: '403 Forbidden', 404: '404 Not Found', 405: '405 Method Not Allowed',
  409: '409 Conflict', 413: '413 Content Too Large', 415: '415 Unsupported Media Type',
  422: '422 Unprocessable Content', 423: '423 Locked', 426: '426 Upgrade Required', 429: '429 Too Many Requests',
  500: '500 Internal Server Error', 501: '501 Not Implemented', 503: '503 Service Unavailable', 504: '504 Gateway Timeout',
};
