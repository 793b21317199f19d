import { Button, Stack, Text } from '@mantine/core';
import { Link } from 'wouter';
import { NavCount, NavEntry } from '../../shell/NavEntry';
import { Icon } from '../../parts/Icon';
import { Glyph } from '../parts/Glyph';
import { useStatus } from '../session/statusContext';
import { PAGES } from './routes';

export function MomentumNavigation({ onNavigate }: { onNavigate: () => void }) {
  const { status } = useStatus();
  return (
    <Stack gap={2} h="100%">
      <Button
        component={Link}
        href="/new"
        onClick={onNavigate}
        leftSection={<Icon name="edit" />}
        mb="sm"
        fullWidth
      >
        New post
      </Button>
      {PAGES.map((page) => (
        <NavEntry
          key={page.path}
          page={page}
          icon={<Glyph name={page.icon} size={18} />}
          badge={page.path === '/inbox' ? <NavCount count={status.counts.inbox} /> : undefined}
          onNavigate={onNavigate}
        />
      ))}
      {status.demo && (
        <Text mt="auto" p="sm" size="xs" c="dimmed">
          <strong>Demo.</strong> LinkedIn runs on this machine: nothing is really published.
        </Text>
      )}
    </Stack>
  );
}
