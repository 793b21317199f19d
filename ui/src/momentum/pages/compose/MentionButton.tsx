import { Button, Popover, Stack, TextInput } from '@mantine/core';
import { useState, type SubmitEvent } from 'react';
import { Glyph } from '../../parts/Glyph';

/** Inserts a mention. LinkedIn links a name only together with the id of its page or member. */
export function MentionButton({
  platform,
  onInsert,
}: {
  platform: string;
  onInsert: (text: string) => void;
}) {
  const [opened, setOpened] = useState(false);
  const [name, setName] = useState('');
  const [target, setTarget] = useState('');
  const byId = platform === 'linkedin';
  const urn = urnOf(target);
  const valid = byId ? Boolean(name.trim() && urn) : /^@?[\w.-]+(@[\w.-]+)?$/.test(name.trim());

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    event.stopPropagation();
    if (!valid) return;
    const plain = name.trim().replace(/^@/, '');
    onInsert(byId ? `@[${plain.replaceAll(/[[\]]/g, '')}](${urn}) ` : `@${plain} `);
    setOpened(false);
    setName('');
    setTarget('');
  };
  return (
    <Popover opened={opened} onChange={setOpened} position="bottom-start" shadow="md" width={320} trapFocus>
      <Popover.Target>
        <Button
          variant="subtle"
          color="gray"
          size="compact-sm"
          leftSection={<Glyph name="mention" />}
          onClick={() => setOpened(!opened)}
        >
          Mention
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <form onSubmit={submit}>
          <Stack gap="xs">
            <TextInput
              label={byId ? 'Name' : 'Handle'}
              description={byId ? 'Exactly as on LinkedIn' : undefined}
              placeholder={byId ? 'Electronica Munich' : 'name@server'}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
              error={!byId && name && !valid ? 'Use a handle such as name@server' : undefined}
              required
              withAsterisk={false}
            />
            {byId && (
              <TextInput
                label="Page number or URN"
                description="From the address of the page’s admin view"
                placeholder="1337 or urn:li:organization:1337"
                value={target}
                onChange={(event) => setTarget(event.currentTarget.value)}
                error={target && !urn ? 'Use the number of a page, or a URN' : undefined}
                required
                withAsterisk={false}
              />
            )}
            <Button type="submit">Insert</Button>
          </Stack>
        </form>
      </Popover.Dropdown>
    </Popover>
  );
}

/** A URN from a number, a URN, or the address of a company page that ends in its number. */
function urnOf(text: string): string | null {
  const given = text.trim();
  if (/^urn:li:(organization|person):[\w-]+$/.test(given)) return given;
  const number = /^(?:https?:\/\/\S*\/company\/)?(\d+)\/?$/.exec(given)?.[1];
  return number ? `urn:li:organization:${number}` : null;
}
