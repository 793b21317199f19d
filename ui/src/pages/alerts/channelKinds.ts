import { CHOICES } from '../../api/schema';
import type { AlertChannel } from '../../api/types';

export interface ChannelField {
  name: string;
  label: string;
  help?: string;
  placeholder?: string;
  isRequired?: true;
  /** Stored encrypted and never shown. */
  isSecret?: true;
  /** The field that it is removed with: it has no control of its own for that. */
  removedWith?: string;
  /** Other than a text: a number, or texts separated by commas. */
  value?: 'number' | 'list';
  choices?: ReadonlyArray<{ value: string; label: string }>;
}

interface ChannelKind {
  label: string;
  help: string;
  fields: readonly ChannelField[];
}

/** What the form asks for each type of channel. A new type is one entry. */
const KINDS = {
  webhook: {
    label: 'Webhook',
    help: 'A signed POST of JSON to your own service.',
    fields: [
      { name: 'url', label: 'URL', placeholder: 'https://hooks.example.org/duetime', isRequired: true },
      {
        name: 'signing_secret',
        label: 'Signing secret',
        help: 'Standard Webhooks secret (whsec_…). It lets the receiver verify the sender.',
        isSecret: true,
      },
    ],
  },
  slack: {
    label: 'Slack',
    help: 'A message in a Slack channel, by an incoming webhook of your workspace.',
    fields: [
      {
        name: 'url',
        label: 'Webhook URL',
        placeholder: 'https://hooks.slack.com/services/…',
        isRequired: true,
        isSecret: true,
      },
    ],
  },
  pagerduty: {
    label: 'PagerDuty',
    help: 'An incident for each alert. The end of the alert resolves it.',
    fields: [
      {
        name: 'routing_key',
        label: 'Integration key',
        help: 'Of the integration "Events API v2" of your PagerDuty service.',
        isRequired: true,
        isSecret: true,
      },
      {
        name: 'url',
        label: 'Events URL',
        help: 'Empty: that of PagerDuty. For accounts in the EU: https://events.eu.pagerduty.com/v2/enqueue',
      },
    ],
  },
  alertmanager: {
    label: 'Alertmanager',
    help: 'Alerts for a Prometheus Alertmanager, which routes and silences them as your others.',
    fields: [
      { name: 'url', label: 'URL', placeholder: 'https://alertmanager.example.org', isRequired: true },
      {
        name: 'authorization',
        label: 'Authorization header',
        placeholder: 'Bearer …',
        isSecret: true,
      },
    ],
  },
  email: {
    label: 'E-mail',
    help: 'An e-mail to each address, by your SMTP server.',
    fields: [
      { name: 'host', label: 'SMTP host', placeholder: 'mail.example.org', isRequired: true },
      { name: 'port', label: 'Port', help: 'Empty: 587', value: 'number' },
      {
        name: 'tls',
        label: 'Encryption',
        choices: [
          { value: 'starttls', label: 'STARTTLS (port 587)' },
          { value: 'tls', label: 'TLS (port 465)' },
          { value: 'none', label: 'None, without a password' },
        ],
      },
      { name: 'sender', label: 'From', placeholder: 'duetime@example.org', isRequired: true },
      {
        name: 'to',
        label: 'To',
        help: 'One or more addresses, separated by commas',
        placeholder: 'ops@example.org, dev@example.org',
        isRequired: true,
        value: 'list',
      },
      { name: 'username', label: 'User name', help: 'Empty: no login' },
      { name: 'password', label: 'Password', isSecret: true, removedWith: 'username' },
    ],
  },
  apprise: {
    label: 'Apprise',
    help: 'Telegram, Teams, ntfy and other services, by a URL of Apprise. An admin must allow it: --allow-apprise.',
    fields: [
      {
        name: 'url',
        label: 'Apprise URL',
        placeholder: 'tgram://bottoken/chat',
        isRequired: true,
        isSecret: true,
      },
    ],
  },
} satisfies Record<string, ChannelKind>;

export type ChannelType = AlertChannel['type'];
/** The type check fails if the API has a type that the form does not know. */
export const CHANNEL_KINDS: Record<ChannelType, ChannelKind> = KINDS;
/** Those of this server, in the order of its API. */
export const CHANNEL_TYPES: readonly ChannelType[] = CHOICES.AlertChannelView.type;
